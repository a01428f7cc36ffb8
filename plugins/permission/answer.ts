/**
 * `/permission …` and `hx permission test …`: what the policy would say to a call, and why. Reads the words, makes the text; judges nothing itself.
 */
import { HarnessError, type Mode } from 'harnessx'
import { DENY, ASK } from './defaults.js'
import type { Judgement } from './judge.js'

/** One question: a command, or for another tool its arguments as JSON, or a path alone. */
export interface Question { readonly tool: string; readonly mode: Mode; readonly json: boolean; readonly arguments: Readonly<Record<string, unknown>> }

const MODES: readonly string[] = ['default', 'accept-edits', 'plan', 'yes'] satisfies Mode[]
export const USAGE = '[--tool NAME] [--mode default|accept-edits|plan|yes] [--json] COMMAND'

/** Options stand before the command; `--` ends them. */
export function readQuestion(args: string): Question {
  let rest = args.trim(), tool = 'bash', mode = 'default', json = false
  for (let option: RegExpExecArray | null; (option = /^(?:--(tool|mode)[ =](\S+)|(--json)|--)(?:\s+|$)/.exec(rest));) {
    rest = rest.slice(option[0].length)
    if (option[1] === 'tool') tool = option[2]!
    else if (option[1] === 'mode') mode = option[2]!
    else if (option[3]) json = true
    else break
  }
  if (!MODES.includes(mode)) throw new HarnessError('usage', `there is no mode "${mode}"; there are ${MODES.join(', ')}`)
  if (rest === '') throw new HarnessError('usage', `say what to judge: ${USAGE}`)
  return { tool, mode: mode as Mode, json, arguments: argumentsOf(tool, rest) }
}

function argumentsOf(tool: string, text: string): Readonly<Record<string, unknown>> {
  if (!text.startsWith('{') || tool === 'bash') return tool === 'bash' ? { command: text } : { path: text }
  try { return JSON.parse(text) as Record<string, unknown> } catch (error) {
    throw new HarnessError('usage', `the arguments of "${tool}" are no JSON: ${(error as Error).message}`, { cause: error })
  }
}

/** `lists` are those of the config, by name. */
export function answerTo({ tool, mode, json }: Question, { kind, reason, rule, command }: Judgement, id: string, lists: Readonly<Record<string, readonly string[]>>): string {
  const list = rule === undefined ? undefined : Object.keys(lists).find(name => lists[name]!.includes(rule)), shipped = rule !== undefined && list === undefined ? (DENY.includes(rule) ? 'deny' : ASK.includes(rule) ? 'ask' : undefined) : undefined
  const where = list !== undefined ? `config.${list} of "${id}"` : shipped !== undefined ? `the shipped ${shipped} list (config.defaults)` : undefined
  if (json) return JSON.stringify({ kind, reason, ...(command !== undefined && { command }), ...(rule !== undefined && { rule }), ...(where !== undefined && { where }), tool, mode, plugin: id })
  return [`${kind}: ${reason}`, ...command !== undefined ? [`  about  ${command}`] : [], ...rule !== undefined ? [`  rule   ${rule}${where === undefined ? '' : `, in ${where}`}`] : []].join('\n')
}
