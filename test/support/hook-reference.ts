/** The reference of the hooks for the guide, from the contract comments in core/agent/hooks.ts: one part for each hook that returns something, a table for those that only tell. Pure. */
import { OTHER_NAMES } from '../../core/agent/hook-rules.js'

/** Names that differ from ours in their spelling only. */
const CLAUDE = ['UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop']

interface Contract { readonly hook: string; readonly kind: string; readonly about: string; readonly example: string | undefined; readonly types: readonly string[] }

export function hookReference(source: string): string {
  const contracts = [...source.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\s*'(agent\/[\w-]+)': (Decide|Amend|Around|Watch)<(.*)>$/gm)].map(([, comment, hook, kind, types]): Contract => {
    const lines = comment!.split('\n').map(line => line.replace(/^\s*\* ?/, '').trim()).filter(line => line !== '')
    return { hook: hook!, kind: kind!.toLowerCase(), about: lines.filter(line => !line.startsWith('@example')).join(' '), example: lines.find(line => line.startsWith('@example'))?.slice('@example '.length), types: split(types!) }
  })
  const parts = contracts.filter(({ kind }) => kind !== 'watch').map(part), told = contracts.filter(({ kind }) => kind === 'watch')
  const rows = told.map(({ hook, about, types }) => `| \`${hook}\` | ${about} | ${payload(types[0]!)} |`)
  const examples = told.flatMap(({ example }) => example ?? [])
  return [...parts, ['| watch | | payload |', '|---|---|---|', ...rows].join('\n'), code(examples.join('\n'))].join('\n\n')
}

function part({ hook, kind, about, example, types: [given, next, own, change] }: Contract): string {
  const names = [...CLAUDE.filter(name => `agent/${name.replace(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase()}` === hook), ...OTHER_NAMES[hook as keyof typeof OTHER_NAMES] ?? []]
  const shape = `Payload: ${payload(given!)}. \`next(${change ? `change?: ${tidy(change)}` : ''})\` gives \`${tidy(next!)}\`; it may return \`${tidy(own ?? next!)}\`.`
  return [`#### \`${hook}\`, ${kind}`, about, shape + (names.length > 0 ? ` Elsewhere: ${names.map(name => `\`${name}\``).join(', ')}.` : ''), ...example === undefined ? [] : [code(example)]].join('\n\n')
}

const code = (text: string): string => `\`\`\`ts\n${text}\n\`\`\``
const tidy = (type: string): string => type.replace(/\breadonly /g, '').replace(/ \| undefined\b/g, '').trim()
const payload = (type: string): string => {
  const more = tidy(type).replace(/^Base( & )?/, '')
  return more === '' ? '' : `\`${more.replace(/^\{ | \}$/g, '').replaceAll('|', '\\|')}\``
}
/** Type arguments: commas at the top level part them. */
function split(types: string): string[] {
  const parts = ['']
  let depth = 0
  for (const char of types) {
    if ('<{[('.includes(char)) depth++
    if ('>}])'.includes(char)) depth--
    if (char === ',' && depth === 0) parts.push('')
    else parts[parts.length - 1] += char
  }
  return parts.map(one => one.trim())
}
