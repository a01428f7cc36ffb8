/**
 * The public types as one flat list: everything that a door (`api.d.ts`, `testing.d.ts`) exports, and what those declarations name, without comments.
 * Reads the declarations that the build wrote, which come one after another from the start of a line.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Source { readonly declared: ReadonlyMap<string, string>; readonly from: ReadonlyMap<string, { readonly file: string; readonly name: string }>; readonly stars: readonly string[]; readonly augments: readonly { readonly file: string; readonly name: string; readonly text: string }[]; readonly outside: readonly string[] }

const TYPES = join(import.meta.dirname, '../../dist/types/core')
const known = new Map<string, Source>()

/** All declarations behind a door that are not behind another, sorted by name. */
export function publicTypes(door: string, besides?: string): string {
  const { texts, outside } = behind(door), others = besides === undefined ? new Map<string, string>() : behind(besides).texts
  const own = [...texts].filter(([name]) => !others.has(name)).map(([, text]) => text)
  return `${[...own.sort((a, b) => named(a).localeCompare(named(b))), ...outside].join('\n\n')}\n`
}

function behind(door: string): { readonly texts: ReadonlyMap<string, string>; readonly outside: readonly string[] } {
  known.clear()
  const start = join(TYPES, door), found = new Map<string, string>(), { outside } = source(start)
  const visit = (file: string, name: string): void => {
    const at = locate(file, name)
    if (!at || found.has(at.name)) return
    found.set(at.name, at.text)
    for (const [word] of at.text.matchAll(/\b[A-Za-z_]\w*\b/g)) visit(at.file, word)
  }
  for (const name of exported(start)) visit(start, name)
  const merged = [...known.values()].flatMap(({ augments }) => augments).filter(({ name }) => found.has(name))
  for (const { text, file } of merged) for (const [word] of text.matchAll(/\b[A-Z]\w*\b/g)) visit(file, word)
  return { texts: new Map([...found].map(([name, text]) => [name, [text, ...merged.filter(one => one.name === name).map(one => one.text)].join('\n')])), outside }
}

const named = (text: string): string => /^export (?:declare )?(?:abstract )?(?:interface|type|class|const|function|let) (\w+)/.exec(text)?.[1] ?? text

function exported(file: string): string[] {
  const { declared, from, stars } = source(file)
  const own = [...declared].filter(([, text]) => text.startsWith('export')).map(([name]) => name)
  return [...own, ...[...from].filter(([, { name }]) => name.endsWith('!')).map(([name]) => name), ...stars.flatMap(exported)]
}
function locate(file: string, name: string): { readonly file: string; readonly name: string; readonly text: string } | undefined {
  const { declared, from, stars } = source(file), text = declared.get(name), there = from.get(name)
  if (text !== undefined) return { file, name, text }
  if (there) return existsSync(there.file) ? locate(there.file, there.name.replace('!', '')) : undefined
  for (const star of stars) {
    const found = locate(star, name)
    if (found) return found
  }
  return undefined
}

function source(file: string): Source {
  const before = known.get(file)
  if (before) return before
  const text = readFileSync(file, 'utf8').replace(/^\s*\/\*\*[^]*?\*\/\n/gm, '')
  const declared = new Map<string, string>(), from = new Map<string, { file: string; name: string }>(), stars: string[] = [], outside: string[] = []
  const augments: { file: string; name: string; text: string }[] = []
  const path = (specifier: string) => join(dirname(file), specifier.replace(/\.js$/, '.d.ts'))
  for (const statement of text.split(/^(?=\S)(?![}\]|)])/m).map(part => part.trimEnd())) {
    const list = /^(import|export) (?:type )?\{([^]*)\} from '([^']+)';$/.exec(statement), star = /^export (?:type )?\* from '([^']+)';$/.exec(statement), augment = /^declare module '[^']+' \{\n {4}interface (\w+) \{\n([^]*)\n {4}\}\n\}$/.exec(statement)
    const name = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|const|function|let) (\w+)/.exec(statement)?.[1]
    if (star) stars.push(path(star[1]!))
    else if (augment) augments.push({ file, name: augment[1]!, text: `interface ${augment[1]} {\n${augment[2]!.replace(/^ {4}/gm, '')}\n}` })
    else if (list && !list[3]!.startsWith('.')) { if (list[1] === 'export') outside.push(statement) }
    else if (list) for (const item of list[2]!.split(',')) {
      const [there, here = there] = item.trim().replace(/^type /, '').split(' as ')
      from.set(here!, { file: path(list[3]!), name: list[1] === 'export' ? `${there}!` : there! })
    }
    else if (name !== undefined) declared.set(name, declared.has(name) ? `${declared.get(name)}\n${statement}` : statement)
  }
  const made = { declared, from, stars, augments, outside }
  known.set(file, made)
  return made
}
