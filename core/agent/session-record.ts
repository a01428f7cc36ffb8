/**
 * One event as one line of JSON, and back. What `encode` gives is what reading the line again will give, to the byte, so a session that goes on and one that was resumed
 * never differ. Pure; knows no file. A line that does not have the shape of its event is refused here, so that nobody behind has to look again.
 */
import { isUtf8 } from 'node:buffer'
import { z } from '../z.js'
import { HarnessError, messageOf } from '../errors.js'
import { freeze } from '../kernel/frozen.js'
import { SESSION_VERSION, type SessionEvent, type SessionEventBody, type SessionHeader, type SessionSummary } from './session-events.js'
import type { ToolSpec, TurnReason } from './vocabulary.js'

export interface Encoded { readonly event: SessionEvent; /** Without the newline. */ readonly line: string }

export function encode(seq: number, ts: string, body: SessionEventBody): Encoded {
  let line: string
  try {
    if (body.type === 'tools') return encodeTools(seq, ts, body.tools)
    line = JSON.stringify({ seq, ts, ...body })
  } catch (error) {
    throw new HarnessError('internal', `a "${body.type}" event for the session log is not plain data: ${messageOf(error)}`, { cause: error })
  }
  return { event: freeze(JSON.parse(line) as SessionEvent), line }
}

/** The longest line of most sessions, and the same in one after another: what it reads back as is made once, and theirs together. */
let offered: { readonly text: string; readonly tools: readonly ToolSpec[] } | undefined
function encodeTools(seq: number, ts: string, tools: readonly ToolSpec[]): Encoded {
  const text = JSON.stringify(tools), type = 'tools'
  if (offered?.text !== text) offered = { text, tools: freeze(JSON.parse(text) as readonly ToolSpec[]) }
  return { event: Object.freeze({ seq, ts, type, tools: offered.tools }), line: `${JSON.stringify({ seq, ts, type }).slice(0, -1)},"tools":${text}}` }
}

export const headerBody = (header: SessionHeader): SessionEventBody => ({ type: 'session', v: SESSION_VERSION, ...header })

/** Gives the text of a record that stands in a file of its own; throws when it is not there, and a HarnessError when that can't be told. */
export type Unspill = (file: string) => Uint8Array
/** The line of a record that is too large for one: its text stands in `file`. */
export const spilledLine = ({ seq, ts }: SessionEvent, file: string): string => JSON.stringify({ seq, ts, type: 'spilled', file })

export type Decoded = { readonly event: SessionEvent; readonly problem?: undefined } | { readonly problem: string; readonly event?: undefined }

/** An event, or why the line is none. Events of types that are not known here are kept: a later minor version may have written them. */
export function decode(line: Uint8Array, unspill: Unspill): Decoded {
  const { record: recordShape, spilled: spilledShape, types } = made ??= shapes()
  let value: unknown
  try {
    if (!isUtf8(line)) return { problem: 'is not UTF-8' }
    value = JSON.parse(textOf(line))
    const spilled = spilledShape.safeParse(value).data
    if (spilled) value = JSON.parse(textOf(unspill(spilled.file)))
  } catch (error) {
    if (error instanceof HarnessError) throw error                                                // the disk's fault, not the line's: nothing may be set aside for it
    return { problem: `can not be read (${messageOf(error)})` }
  }
  const record = recordShape.safeParse(value)
  const issue = (record.error ?? types[record.data.type]?.safeParse(value).error)?.issues[0]
  if (issue) return { problem: `is not an event (${[...issue.path, issue.message].join(' ')})` }
  return { event: freeze(value as SessionEvent) }
}
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')

/** Throws when the log was written by a version that this one can not read. */
export function checkVersion(id: string, event: SessionEvent | undefined): void {
  if (event?.type !== 'session') throw new HarnessError('session_damaged', `session "${id}" can not be read: its first line, which says what it is, is missing or damaged`)
  if (event.id !== id) throw new HarnessError('session_damaged', `session "${id}" can not be read: its first line is that of session ${JSON.stringify(event.id.slice(0, 80))}; a log keeps the name that it was given`)
  if (event.v !== SESSION_VERSION) throw new HarnessError('session_damaged', `session "${id}" has format ${event.v}, this hx reads format ${SESSION_VERSION}; use the version of hx that wrote it, or a newer one`)
}

/** What a list shows. Needs not all events: the first ones, with the first prompt, and those of the last turn will do. */
export function summarize(events: Iterable<SessionEvent>): SessionSummary | undefined {
  let header: Extract<SessionEvent, { type: 'session' }> | undefined
  let title = '', updatedAt = '', turns = 0, archived = false, lastReason: TurnReason | undefined
  for (const event of events) {
    updatedAt = event.ts
    if (event.type === 'session') header ??= event
    if (event.type === 'archived') archived = true
    if ('turn' in event && event.turn > turns) { turns = event.turn; lastReason = 'interrupted' }
    if (event.type === 'turn-start') title ||= oneLine(event.prompt)
    if (event.type === 'turn-end') lastReason = event.reason
  }
  return header && {
    id: header.id, cwd: header.cwd, createdAt: header.ts, updatedAt, turns, title, archived,
    ...lastReason && { lastReason },
    ...header.parent !== undefined && { parent: header.parent },
  }
}

/** By last event, then by id. */
export const newestFirst = (summaries: readonly SessionSummary[]): SessionSummary[] =>
  summaries.toSorted((a, b) => a.updatedAt === b.updatedAt ? (a.id < b.id ? 1 : -1) : a.updatedAt < b.updatedAt ? 1 : -1)

/** At most 80 characters on one line; what a terminal would obey (control characters, changes of direction) becomes a space. */
export function oneLine(value: string): string {
  const characters = Array.from(value.slice(0, 1000).replace(/[\p{Cc}\p{Cs}\p{Z}\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim())
  return characters.length > 80 ? `${characters.slice(0, 79).join('')}…` : characters.join('')
}

/** Made when the first line is read: a start with a new session reads none, and would wait for it. */
let made: ReturnType<typeof shapes> | undefined
function shapes() {
  const parts = z.array(z.union([z.looseObject({ type: z.literal('text'), text: z.string() }), z.looseObject({ type: z.string().regex(/^(?!text$)/) })]))
  const calls = z.array(z.looseObject({ id: z.string(), name: z.string(), arguments: z.string() }))
  const message = { role: z.string(), content: parts, toolCalls: calls.optional() }
  const turn = z.int().nonnegative()
  /** What is read from each type anywhere in core; other fields are carried as they are. */
  const types: Readonly<Record<string, z.ZodType>> = {
    spilled: z.never({ error: 'names no record of this session' }),
    session: z.looseObject({ v: z.number(), id: z.string(), cwd: z.string() }),
    'turn-start': z.looseObject({ turn, prompt: z.string() }),
    system: z.looseObject({ text: z.string() }),
    tools: z.looseObject({ tools: z.array(z.looseObject({ name: z.string(), description: z.string(), parameters: z.looseObject({}) })) }),
    message: z.looseObject({ turn, ...message }),
    request: z.looseObject({ turn, model: z.string(), options: z.looseObject({}), tools: z.array(z.string()).optional() }),
    'tool-intent': z.looseObject({ turn, callId: z.string(), name: z.string() }),
    'tool-result': z.looseObject({ turn, callId: z.string(), name: z.string(), kind: z.string(), content: z.string() }),
    decision: z.looseObject({ turn, hook: z.string(), plugin: z.string(), kind: z.string() }),
    approval: z.looseObject({ turn, callId: z.string(), answer: z.string() }),
    compaction: z.looseObject({ turn, through: z.number(), messages: z.array(z.looseObject(message)) }),
    usage: z.looseObject({ turn, inputTokens: z.number(), outputTokens: z.number() }),
    error: z.looseObject({ turn, message: z.string() }),
    warning: z.looseObject({ turn, message: z.string() }),
    'turn-end': z.looseObject({ turn, reason: z.string() }),
  }
  return {
    record: z.looseObject({ seq: z.int().positive(), ts: z.string(), type: z.string() }),
    spilled: z.looseObject({ type: z.literal('spilled'), file: z.string().regex(/^\d+\.json$/) }),
    types,
  }
}
