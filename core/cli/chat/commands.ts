/**
 * What may be written with a slash: the commands of the chat itself, and those of plugins. Each says something, in lines; none draws.
 * The words are the chat's own; a plugin's command of the same name is never reached, and that is said in /help.
 */
import { dollars } from '../../agent/cost.js'
import type { Mode } from '../../agent/services.js'
import type { Usage } from '../../agent/vocabulary.js'
import { didYouMean, HarnessError } from '../../errors.js'
import { shownDiff } from '../held.js'
import { sessionId } from '../sessions.js'
import { elapsed, oneLine, printable, table, type Paint } from '../terminal.js'
import type { Sources, Option } from './completion.js'
import type { Conversation } from './conversation.js'

export interface CommandContext {
  readonly talk: Conversation
  readonly cwd: string
  readonly paint: Paint
  say(text: string): void
  /** Sends a prompt as if it had been typed. */
  submit(prompt: string): void
  /** Shows where a session stands, after it was changed to. */
  recall(): Promise<void>
  leave(): void
  readonly signal: AbortSignal
}
interface Own { readonly about: string; readonly words?: string; run(args: string, context: CommandContext): Promise<void> | void }

const MODES: readonly Mode[] = ['default', 'accept-edits', 'plan', 'yes']
const MODE_WORDS: Readonly<Record<Mode, string>> = { default: 'asks where the policy says so', 'accept-edits': 'edits of files need no yes', plan: 'nothing but read-only tools runs', yes: 'every ask is answered with yes' }
const KEYS = `Enter sends; a backslash before it, or Ctrl-J, begins a new line; a pasted block is one prompt
@file names a file (Tab completes); up and down go through what you typed before, Ctrl-R through what has the words typed so far
while a turn runs: Enter queues, a ">" before the text hands it to the running turn, up takes the last queued back
Ctrl-C stops the turn, or clears the line, or leaves (twice); Ctrl-D leaves; Ctrl-T shows or folds thoughts; Ctrl-L clears the screen`

const OWN: Readonly<Record<string, Own>> = {
  help: { about: 'this', run: async (_, { talk, say, paint }) => {
    const plugins = (await talk.ask(client => client.commands())).filter(({ name }) => !(name in OWN))
    const rows = [...Object.entries(OWN).map(([name, { about, words = '' }]) => [`/${name}${words && ` ${words}`}`, about]), ...plugins.map(({ name, description, plugin }) => [`/${name}`, `${oneLine(description, 90)} (${plugin})`])]
    say(`${table([['COMMAND', 'DOES'], ...rows], paint)}\n\n${KEYS}`)
  } },
  model: { about: 'which model answers, or another one', words: '[NAME]', run: async (args, { talk, say, paint }) => {
    const models = await talk.ask(client => client.models())
    if (args === '') {
      say(`${table([['MODEL', 'READY'], ...models.map(({ id, ready, reason, defaultModel }) => [defaultModel === undefined ? id : `${id}/${oneLine(defaultModel)}`, ready ? 'yes' : `no: ${oneLine(reason ?? '', 80)}`])], paint)}\n${talk.model === undefined ? 'in use: the one of the config, else the first that is ready' : `in use: ${talk.model}`}`)
      return
    }
    const id = args.split('/')[0]!, model = models.find(one => one.id === id)
    if (!model) throw new HarnessError('unknown_id', `there is no model "${args}"${didYouMean(id, models.map(one => one.id))}; /model lists them`)
    if (!model.ready) throw new HarnessError('no_model', `model "${args}" is not ready: ${model.reason}`)
    talk.model = args
    say(`from the next turn on: ${oneLine(args)}`)
  } },
  mode: { about: 'what needs no asking', words: '[default|accept-edits|plan|yes]', run: (args, { talk, say, paint }) => {
    if (args !== '' && !MODES.includes(args as Mode)) throw new HarnessError('usage', `there is no mode "${args}"${didYouMean(args, [...MODES])}; there are ${MODES.join(', ')}`)
    if (args !== '') talk.mode = args as Mode
    say(MODES.map(mode => `${mode === talk.mode ? '›' : ' '} ${paint(mode === talk.mode ? 'bold' : 'dim', mode.padEnd(13))}${MODE_WORDS[mode]}`).join('\n'))
  } },
  cost: { about: 'tokens and cost of this session', run: async (_, { talk, say }) => {
    const { usage, turns, inside } = await talk.cost()
    say([`${turns} ${turns === 1 ? 'turn' : 'turns'}: ${spent(usage)}`, ...inside.inputTokens > 0 ? [`tasks inside them: ${spent(inside)}`] : [],
      ...usage.cost === undefined && turns > 0 ? ['no price is known for these models: agent.prices in the config says what a million tokens cost'] : []].join('\n'))
  } },
  compact: { about: 'a summary in place of the conversation so far (plugin "compaction")', words: '[WORDS]', run: async (args, context) => {
    if ((await context.talk.ask(client => client.commands())).some(({ name }) => name === 'compact')) return ofPlugin('compact', args, context)
    throw new HarnessError('unknown_id', 'no active plugin offers /compact; the shipped plugin "compaction" does: add it to plugins in the config')
  } },
  continue: { about: 'go on with the last session here, or with another', words: '[SESSION]', run: async (args, context) => {
    const { talk, cwd } = context, all = await talk.ask(client => client.sessions())
    const id = args !== '' ? await sessionId(all, args, id => talk.ask(client => client.session(id))) : all.find(one => one.cwd === cwd && one.id !== talk.session && !one.archived && one.parent === undefined)?.id
    if (id === undefined) throw new HarnessError('session_missing', `there is no other session in ${cwd}; /sessions lists all`)
    talk.session = id
    await context.recall()
  } },
  plugins: { about: 'plugins and their states', run: async (_, { talk, say, paint }) => {
    const all = await talk.ask(client => client.plugins())
    say([table([['PLUGIN', 'STATE', 'HANDLERS', 'TOOLS', 'VERSION'], ...all.map(one => [one.id, one.state, String(one.handlers), String(one.tools), String(one.version)])], paint),
      ...all.flatMap(({ id, lastError, reason }) => lastError ?? reason ? [`  ${id}: ${oneLine(lastError ?? reason ?? '', 300)}`] : [])].join('\n'))
  } },
  hooks: { about: 'hooks, and who hangs on them in which order', run: async (_, { talk, say, paint }) => {
    const hooks = (await talk.ask(client => client.hooks())).filter(({ handlers }) => handlers.length > 0)
    say(table([['HOOK', 'KIND', 'PLUGINS'], ...hooks.map(({ hook, kind, handlers }) => [hook, kind, handlers.map(({ plugin, calls, blocks, errors, p95 }) => `${plugin} (${calls} calls${blocks > 0 ? `, ${blocks} blocked` : ''}${errors > 0 ? `, ${errors} errors` : ''}, p95 ${elapsed(p95)})`).join(' → ')])], paint))
  } },
  tools: { about: 'tools that the model is offered', run: async (_, { talk, say, paint }) => {
    const tools = await talk.ask(client => client.tools())
    say(tools.length > 0 ? table([['TOOL', 'PLUGIN', 'DOES'], ...tools.map(({ name, plugin, description }) => [name, plugin, oneLine(description, 200)])], paint) : 'no tools: no active plugin registers one')
  } },
  sessions: { about: 'the last sessions of this folder', run: async (_, { talk, cwd, say, paint }) => {
    const all = (await talk.ask(client => client.sessions())).filter(one => one.cwd === cwd && one.parent === undefined).slice(0, 15)
    say(all.length > 0 ? table([['', 'SESSION', 'WHEN', 'TURNS', 'FIRST PROMPT'], ...all.map(one => [one.id === talk.session ? '›' : '', one.id, one.updatedAt.slice(0, 16).replace('T', ' '), String(one.turns), oneLine(one.title, 80)])], paint) : 'no sessions here yet')
  } },
  reload: { about: 'read the config again, load a plugin anew, or what is held', words: '[PLUGIN|--held|--diff]', run: async (args, { talk, say }) => {
    if (args === '--diff') {
      const { held } = await talk.ask(client => client.status())
      say(held.length > 0 ? shownDiff(held) : 'nothing is held')
      return
    }
    const plugins = (await talk.ask(client => client.plugins())).map(({ id }) => id)
    if (args !== '' && args !== '--held' && !plugins.includes(args)) throw new HarnessError('unknown_id', `there is no plugin "${args}"${didYouMean(args, plugins)}; /plugins lists them`)
    const { reloaded, failed, ms } = await talk.ask(client => args === '--held' ? client.reloadHeld() : client.reload(args === '' ? undefined : [args]))
    say([reloaded.length > 0 ? `reloaded: ${reloaded.join(', ')}, in ${elapsed(ms)}` : 'nothing changed', ...failed.map(({ id, message }) => `failed: ${id}: ${printable(message)}`)].join('\n'))
  } },
  new: { about: 'begin a new session', run: (_, { talk, say }) => {
    talk.session = undefined
    say('a new session begins with your next prompt')
  } },
  quit: { about: 'leave', run: (_, { leave }) => { leave() } },
}

/** Does what stands behind the slash. Throws a HarnessError with a sentence. */
export async function runCommand(text: string, context: CommandContext): Promise<void> {
  const [, name = '', args = ''] = /^\/(\S*)\s*([^]*)$/.exec(text) ?? []
  const own = Object.hasOwn(OWN, name) ? OWN[name] : undefined
  if (own) return own.run(args.trim(), context)
  const offered = (await context.talk.ask(client => client.commands())).map(one => one.name)
  if (offered.includes(name)) return ofPlugin(name, args.trim(), context)
  throw new HarnessError('unknown_id', `there is no command "/${oneLine(name, 40)}"${didYouMean(name, [...Object.keys(OWN), ...offered]).replace(/"(.+)"/, '"/$1"')}; /help lists them`)
}
async function ofPlugin(name: string, args: string, { talk, say, submit, signal }: CommandContext): Promise<void> {
  const { text, prompt } = await talk.command(name, args, signal)
  if (text !== undefined && text !== '') say(printable(text))
  if (prompt !== undefined) submit(prompt)
}

/** Commands for completion, with the words that may follow each. */
export async function commandSources(talk: Conversation): Promise<Sources['commands']> {
  const [plugins, models, sessions, offered] = await talk.ask(client => Promise.all([client.plugins(), client.models(), client.sessions(), client.commands()]))
  const words: Readonly<Record<string, readonly Option[]>> = {
    model: models.flatMap(({ id, models: known, defaultModel }) => [...new Set([...defaultModel === undefined ? [] : [defaultModel], ...known])].map(model => ({ value: `${id}/${model}` }))),
    mode: MODES.map(value => ({ value, about: MODE_WORDS[value] })),
    reload: plugins.map(({ id, state }) => ({ value: id, about: state })),
    continue: sessions.slice(0, 50).map(({ id, title }) => ({ value: id, about: oneLine(title, 60) })),
  }
  return [...Object.entries(OWN).map(([value, { about }]) => ({ value, about, words: words[value] })), ...offered.filter(({ name }) => !(name in OWN)).map(({ name, description }) => ({ value: name, about: oneLine(description, 80) }))]
}

export function spent({ inputTokens, outputTokens, cachedTokens = 0, cost }: Usage): string {
  return printable(`${inputTokens + outputTokens} tokens (${inputTokens} in${cachedTokens > 0 ? `, ${cachedTokens} of them cached` : ''}, ${outputTokens} out)${cost === undefined ? '' : `, ${dollars(cost)}`}`)
}
