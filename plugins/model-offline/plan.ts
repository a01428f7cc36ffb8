/**
 * What to do next, from the conversation alone: nothing is remembered between two requests. The tasks of the prompt are worked through again with the results that
 * are in the history; where a result is missing, its call is the next one. Pure and deterministic.
 */
import { textOf, type Message, type ModelRequest } from 'harnessx'
import { jobOf, type Job } from './jobs.js'
import { outcomeOf, type Result } from './results.js'
import { tasksOf } from './tasks.js'
import { Toolbox, type Call } from './toolbox.js'

export type Plan = { readonly kind: 'calls'; readonly say: string; readonly calls: readonly Call[] } | { readonly kind: 'answer'; readonly say: string }
const MOST_TASKS = 5, MOST_ROUNDS = 9

export function plan(request: Pick<ModelRequest, 'messages' | 'tools'>): Plan {
  const { prompt, rounds } = situation(request.messages)
  const tools = new Toolbox(request.tools)
  const tasks = tasksOf(prompt)
  const jobs = tasks.slice(0, MOST_TASKS).map(task => jobOf(task, tools))
  const results = new Map<Job, Result[]>(jobs.map(job => [job, []]))
  const refused = new Map<string, Result>()
  let round = 0
  for (const group of groups(jobs)) {
    for (;;) {
      const asked = group.flatMap(job => {
        const call = job.next(results.get(job)!)
        const known = call && refused.get(JSON.stringify(call))
        if (known) results.get(job)!.push(known)
        return call && !known ? [{ job, call }] : []
      })
      if (asked.length === 0 || round >= MOST_ROUNDS) break
      const past = rounds[round++]
      if (!past) return { kind: 'calls', say: intention(asked.map(({ job, call }) => results.get(job)!.length === 0 ? job.doing : `try ${Object.values(call.arguments).join(' ')} instead`)), calls: asked.map(({ call }) => call) }
      for (const [place, { job, call }] of asked.entries()) {
        const content = past[place]
        const result: Result = { call, content: content ?? '', outcome: content === undefined ? 'interrupted' : outcomeOf(content, call) }
        results.get(job)!.push(result)
        if (result.outcome === 'refused') refused.set(JSON.stringify(call), result)
      }
    }
  }
  const reports = jobs.map(job => job.report(results.get(job)!))
  if (tasks.length > MOST_TASKS) reports.push(`I take ${MOST_TASKS} tasks at a time; ask again for the other ${tasks.length - MOST_TASKS}.`)
  if (reports.length === 0) reports.push(jobOf({ kind: 'talk', about: 'help' }, tools).report([]))
  return { kind: 'answer', say: reports.length === 1 ? reports[0]! : reports.map(report => `- ${report}`).join('\n') }
}

/** Neighbours that only read go together; anything else goes alone, after what was asked before it. */
function groups(jobs: readonly Job[]): Job[][] {
  const out: Job[][] = []
  for (const job of jobs) {
    const last = out.at(-1)
    if (job.reads && last?.at(-1)?.reads) last.push(job)
    else out.push([job])
  }
  return out
}

const intention = (doings: readonly string[]): string => `I ${doings.length > 1 ? `${doings.slice(0, -1).join(', ')} and ${doings.at(-1)}` : doings[0]}.`

/** The prompt that is open, and the results of the replies since, reply by reply. What a plugin put in between is a note, unless it came after an answer. */
function situation(messages: readonly Message[]): { prompt: string; rounds: (string | undefined)[][] } {
  const answered = messages.findLastIndex(message => message.role === 'assistant' && !message.toolCalls?.length)
  const asks = (message: Message): boolean => message.role === 'user' && message.source?.kind !== 'plugin'
  const open = messages.findLastIndex((message, place) => place > answered && asks(message))
  const at = open !== -1 ? open : messages.findLastIndex((message, place) => place > answered && message.role === 'user')
  if (at === -1) return { prompt: '', rounds: [] }
  const rest = messages.slice(at + 1)
  const answers = new Map(rest.filter(message => message.role === 'tool').map(message => [message.toolCallId, textOf(message)]))
  return { prompt: textOf(messages[at]!), rounds: rest.filter(message => message.role === 'assistant').map(message => (message.toolCalls ?? []).map(call => answers.get(call.id))) }
}
