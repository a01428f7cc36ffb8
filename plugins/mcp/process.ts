/**
 * A server that is a process of ours, spoken to over its standard input and output. The SDK's own stops the first process alone; this one stops the whole group, so that what `npx` started goes too.
 * Invariant: after `close` nobody of the group is left, within two seconds.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { Sdk } from './sdk.js'

export interface ServerCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

/** To end by itself once its input has ended, then after SIGTERM; then SIGKILL. */
const LEAVES_MS = 500, TERM_MS = 1000
/** Whoever left the group may hold its output open; it is not waited for. */
const REST_MS = 200
const MAX_LINE = 2000
/** Lines of its standard error that are told in a while. */
const MOST_LINES = 200, WHILE_MS = 10_000

export class ServerProcess implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** The last words on its standard error. */
  lastWords = ''
  /** It was ended for that. */
  saidTooMuch = false
  readonly #spec: ServerCommand
  readonly #sdk: Sdk
  readonly #line: (line: string) => void
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  #gone: Promise<void> = Promise.resolve()
  #rest: Promise<void> = Promise.resolve()
  #ending: Promise<void> | undefined

  readonly #maxBytes: number

  /** `line` is told what it writes to its standard error; a message of more than `maxBytes` ends it. */
  constructor(spec: ServerCommand, maxBytes: number, sdk: Sdk, line: (line: string) => void) {
    this.#maxBytes = maxBytes
    this.#spec = spec
    this.#sdk = sdk
    this.#line = line
  }

  async start(): Promise<void> {
    const { command, args, cwd, env } = this.#spec
    const child = this.#child = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
    this.#gone = new Promise(resolve => {
      child.once('exit', () => {
        this.#signal('SIGKILL')                             // whom it left behind; the group is named right after its first process was reaped, so its number can't be another's yet
        resolve()
      })
    })
    const closed = new Promise(resolve => { child.once('close', resolve) })      // `once` would fail with a program that isn't there
    this.#rest = this.#gone.then(() => settles(closed, REST_MS)).then(() => { this.onclose?.() })   // what it said last is still read
    child.stdin.on('error', error => { this.onerror?.(error) })
    child.stdout.on('data', splitter(this.#maxBytes, line => {
      try { this.onmessage?.(this.#sdk.deserializeMessage(line)) } catch (error) { this.onerror?.(error as Error) }      // a line that is no message
    }, () => {
      this.saidTooMuch = true
      child.stdout.destroy()
      void this.close()
    }))
    child.stderr.setEncoding('utf8').on('data', lines(line => {
      this.lastWords = line
      this.#line(line)
    }))
    await new Promise<void>((resolve, reject) => { child.once('spawn', resolve).once('error', error => { reject(failure(error, this.#spec)) }) })
  }
  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {}
    if (!stdin?.writable) throw new Error('it is not running')
    if (!stdin.write(this.#sdk.serializeMessage(message))) await new Promise<void>(resolve => { stdin.once('drain', resolve).once('close', resolve) })
  }
  close(): Promise<void> { return this.#ending ??= this.#end() }

  async #end(): Promise<void> {
    const child = this.#child
    if (child?.pid === undefined) return
    child.stdin.end()
    if (await settles(this.#gone, LEAVES_MS)) return this.#rest
    this.#signal('SIGTERM')
    if (await settles(this.#gone, TERM_MS)) return this.#rest
    this.#signal('SIGKILL')
    if (await settles(this.#gone, TERM_MS / 2)) return this.#rest
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  }
  #signal(signal: NodeJS.Signals): void {
    try { process.kill(-this.#child!.pid!, signal) } catch { /* ESRCH alone: nobody is left */ }
  }
}

/** Does it settle within `ms`? Leaves no timer. */
async function settles(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const limit = new AbortController()
  try { return await Promise.race([promise.then(() => true), sleep(ms, false, { signal: limit.signal })]) } finally { limit.abort() }
}
/** Hands on whole lines, each put together once; `tooLong` is the end. */
function splitter(maxBytes: number, told: (line: string) => void, tooLong: () => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [], bytes = 0
  return chunk => {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, end)]).toString().trimEnd();
      [parts, bytes, from] = [[], 0, end + 1]
      if (line !== '') told(line)
    }
    parts.push(chunk.subarray(from))
    bytes += chunk.length - from
    if (bytes > maxBytes) tooLong()
  }
}
/** Hands on whole lines, of a bounded length and number. */
function lines(told: (line: string) => void): (text: string) => void {
  let rest = '', since = 0, count = 0
  return text => {
    const parts = (rest + text).split('\n'), now = performance.now()
    rest = parts.pop()!.slice(-MAX_LINE)
    if (now - since > WHILE_MS) [since, count] = [now, 0]
    for (const line of parts.filter(part => part.trim() !== '')) {
      count++
      if (count <= MOST_LINES) told(line.trimEnd().slice(0, MAX_LINE))
      else if (count === MOST_LINES + 1) told(`(more than ${MOST_LINES} lines in ${WHILE_MS / 1000} s; the rest of them is left out)`)
    }
  }
}
function failure(error: NodeJS.ErrnoException, { command, cwd }: ServerCommand): Error {
  return error.code === 'ENOENT' ? new Error(`"${command}" was not found (or its cwd "${cwd}" does not exist)`, { cause: error }) : error
}
