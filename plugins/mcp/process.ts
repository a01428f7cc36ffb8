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
/** A message that is longer ends the connection. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024
const MAX_LINE = 2000

export class ServerProcess implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** The last words on its standard error. */
  lastWords = ''
  readonly #spec: ServerCommand
  readonly #sdk: Sdk
  readonly #line: (line: string) => void
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  #gone: Promise<void> = Promise.resolve()
  #ending: Promise<void> | undefined

  /** `line` is told what it writes to its standard error. */
  constructor(spec: ServerCommand, sdk: Sdk, line: (line: string) => void) {
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
    void this.#gone.then(() => settles(closed, REST_MS)).then(() => { this.onclose?.() })   // what it said last is still read
    const buffer = new this.#sdk.ReadBuffer({ maxBufferSize: MAX_MESSAGE_BYTES })
    child.stdin.on('error', error => { this.onerror?.(error) })
    child.stdout.on('data', (chunk: Buffer) => {
      try { buffer.append(chunk) } catch (error) {
        this.onerror?.(error as Error)
        void this.close()
        return
      }
      for (;;) {
        try {
          const message = buffer.readMessage()
          if (message === null) return
          this.onmessage?.(message)
        } catch (error) { this.onerror?.(error as Error) }  // a line that is no message
      }
    })
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
    if (await settles(this.#gone, LEAVES_MS)) return
    this.#signal('SIGTERM')
    if (await settles(this.#gone, TERM_MS)) return
    this.#signal('SIGKILL')
    await settles(this.#gone, TERM_MS / 2)
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
/** Hands on whole lines, of a bounded length. */
function lines(told: (line: string) => void): (text: string) => void {
  let rest = ''
  return text => {
    const parts = (rest + text).split('\n')
    rest = parts.pop()!.slice(-MAX_LINE)
    for (const line of parts) if (line.trim() !== '') told(line.trimEnd().slice(0, MAX_LINE))
  }
}
function failure(error: NodeJS.ErrnoException, { command, cwd }: ServerCommand): Error {
  return error.code === 'ENOENT' ? new Error(`"${command}" was not found (or its cwd "${cwd}" does not exist)`, { cause: error }) : error
}
