/** `hx trace SESSION`: its turns as trees with times, who decided what, and at the end what was slow or failed. */
import { HarnessError } from '../errors.js'
import { sessionStore } from './connect.js'
import type { Io } from './io.js'
import { sessionId } from './sessions.js'
import { counted, elapsed, oneLine, type Paint } from './terminal.js'
import { isFailure, isSlow, traceOf, type Decided, type Node, type Step, type TurnTrace } from './trace-tree.js'

export async function trace(io: Io, given: string, options: { turn?: number }): Promise<number> {
  const store = await sessionStore(io), session = await sessionId(await store.list(), given, id => store.read(id))
  const { events, problems } = await store.read(session)
  const all = traceOf(events), turns = options.turn === undefined ? all : all.filter(({ turn }) => turn === options.turn)
  if (options.turn !== undefined && turns.length === 0) throw new HarnessError('unknown_id', `session ${session} has no turn ${options.turn}; it has ${counted(all.length, 'turn')}`)
  if (io.json) { io.line({ session, turns }); return 0 }
  for (const { line, message } of problems) io.note(`line ${line}: ${message}`)
  io.say(turns.length === 0 ? `session ${session} has no turn yet` : turns.map(turn => drawn(turn, io.paint)).join('\n\n'))
  return 0
}

function drawn(turn: TurnTrace, paint: Paint): string {
  const { stats, usage, steps } = turn
  const facts = [turn.reason ?? 'it has no end yet', ...(turn.ms === undefined ? [] : [elapsed(turn.ms)]), ...(stats ? [counted(stats.steps, 'step'), counted(stats.toolCalls, 'call'), ...(stats.blocked > 0 ? [`${stats.blocked} refused`] : [])] : []), ...(usage ? [tokens(usage)] : [])]
  return [
    paint('bold', `turn ${turn.turn}: ${oneLine(turn.prompt, 80)}`), paint('dim', `  ${facts.join(' · ')}`),
    ...steps.flatMap((step, index) => branch(step, index === steps.length - 1, paint)),
    ...(turn.message === undefined ? [] : [paint('yellow', `  ${oneLine(turn.message, 200)}`)]),
    ...callOuts(steps, paint),
  ].join('\n')
}

interface Line { readonly text: string; readonly below?: readonly string[] }
function branch(step: Step, last: boolean, paint: Paint): string[] {
  const lines = step.nodes.map(node => lineOf(node, paint)).filter(line => line !== undefined)
  return grown([{ text: `${paint('bold', `step ${step.step}`)} ${paint('dim', `at ${elapsed(step.at)}, ${elapsed(step.ms)}`)}` }], last ? '└─ ' : '├─ ').concat(
    lines.flatMap((line, index) => grown([line], index === lines.length - 1 ? '└─ ' : '├─ ').map(text => `${last ? '   ' : '│  '}${text}`)))
}
const grown = (lines: readonly Line[], mark: string): string[] => lines.flatMap(({ text, below = [] }) => [
  mark + text, ...below.map((inner, index) => `${mark === '└─ ' ? '   ' : '│  '}${index === below.length - 1 ? '└─ ' : '├─ '}${inner}`),
])

function lineOf(node: Node, paint: Paint): Line | undefined {
  switch (node.type) {
    case 'decision': return { text: decided(node, paint) }
    case 'message': return { text: `${paint('dim', `message of ${node.from}:`)} ${oneLine(node.text, 100)}` }
    case 'request': return { text: `${paint('cyan', 'request')} ${node.model}${node.attempt > 1 ? ` (attempt ${node.attempt})` : ''}${node.tools === undefined ? '' : `, ${counted(node.tools, 'tool')}`}${node.ms === undefined ? '' : `  ${elapsed(node.ms)}`}${node.usage ? `  ${tokens(node.usage)}` : ''}` }
    case 'reply': return { text: `${paint('cyan', 'reply')}${node.text.trim() === '' ? '' : ` ${oneLine(node.text, 100)}`}${node.calls > 0 ? paint('dim', ` (${counted(node.calls, 'call')})`) : ''}` }
    case 'note': return { text: paint(node.level === 'info' ? 'dim' : node.level === 'warning' ? 'yellow' : 'red', oneLine(node.text, 200)) }
    case 'call': {
      const good = node.outcome === 'ok'
      return {
        text: `${paint('bold', node.name)}(${oneLine(JSON.stringify(node.arguments) ?? '', 100)})  ${paint(good ? 'green' : 'red', node.outcome ?? 'no result')}${node.plugin === undefined ? '' : ` by ${node.plugin}`}${node.ms ? `  ${elapsed(node.ms)}` : ''}`,
        below: [
          ...(node.changedFrom === undefined ? [] : [`arguments were ${oneLine(JSON.stringify(node.changedFrom), 120)}`]),
          ...node.decisions.map(one => decided(one, paint)),
          ...(node.asked === undefined ? [] : [`asked: ${oneLine(node.asked, 160)}`]),
          ...(node.result === undefined ? [] : [paint('dim', `→ ${oneLine(node.result, 120)}`)]),
        ],
      }
    }
  }
}
function decided(one: Decided, paint: Paint): string {
  const tone = isFailure(one) ? 'red' : isSlow(one) || one.kind === 'slow' ? 'yellow' : one.kind === 'block' || one.kind === 'reject' || one.kind === 'ask' ? 'magenta' : 'dim'
  return `${one.hook}  ${one.plugin} ${paint(tone, one.kind)}${one.reason === undefined ? '' : `: ${oneLine(one.reason, 140)}`}${one.change === undefined ? '' : `: ${oneLine(one.change, 140)}`}${one.ms === undefined ? '' : paint(tone === 'dim' ? 'dim' : tone, `  ${elapsed(one.ms)}`)}`
}

/** What a person should look at, once more at the end. */
function callOuts(steps: readonly Step[], paint: Paint): string[] {
  const all = steps.flatMap(({ nodes }) => nodes.flatMap(node => node.type === 'decision' ? [node] : node.type === 'call' ? node.decisions : []))
  const of = (found: readonly Decided[]) => [...new Set(found.map(({ plugin, hook }) => `${plugin} in ${hook}`))].join(', ')
  const failed = all.filter(isFailure), slow = all.filter(isSlow)
  return [
    ...(failed.length > 0 ? [paint('red', `  failed: ${of(failed)}; what and where: hx plugins info ${failed[0]!.plugin}, hx logs`)] : []),
    ...(slow.length > 0 ? [paint('yellow', `  slow: ${of(slow)}; see hx hooks`)] : []),
  ]
}
const tokens = ({ inputTokens, outputTokens }: { readonly inputTokens: number; readonly outputTokens: number }): string => `${inputTokens} → ${outputTokens} tokens`
