/**
 * A daemon as a process that a test or soak starts, kills and starts again, in a folder of its own, with a model endpoint in another process. Knows no test runner.
 * Requests and streams go over its socket without our own client, so that what is counted is what was sent.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { HEADERS, PROTOCOL, ROUTES } from '../../core/daemon/protocol.js'
import type { SessionEvent } from '../../core/agent/session-events.js'

const CLI = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url)), MODEL = fileURLToPath(new URL('../../test/support/processes/load-model.mjs', import.meta.url))
const PATIENCE_MS = 60_000

/** One server-sent event; `data` is whatever came. */
export interface Told { readonly event: string; readonly id: number | undefined; readonly data: any }
export interface Answer { readonly status: number; readonly headers: IncomingMessage['headers']; readonly body: any }
export interface Asked { readonly method?: string; readonly body?: object; readonly headers?: Record<string, string>; readonly signal?: AbortSignal }

export interface Places { readonly folder: string; readonly home: string; readonly sessions: string; readonly logs: string; readonly modelPid: number; /** Its base URL, with `/v1`. */ readonly modelUrl: string; close(): Promise<void> }
export interface Served extends Places {
  readonly child: ChildProcess
  readonly pid: number
  /** Milliseconds from its start until it said that it is ready. */
  readonly readyMs: number
  readonly stderr: () => string
  open(path: string, asked?: Asked): Promise<IncomingMessage>
  ask(path: string, asked?: Asked): Promise<Answer>
  /** The events of a stream, to its end; rejects when the connection breaks. */
  follow(path: string, asked?: Asked): AsyncGenerator<Told>
  run(prompt: string, more?: object, asked?: Asked): AsyncGenerator<Told>
  kill(signal: NodeJS.Signals): Promise<{ readonly code: number | null; readonly ms: number }>
  stop(): Promise<void>
}

export interface Setting {
  readonly config?: string
  readonly files?: Readonly<Record<string, string>>
  readonly env?: Record<string, string>
  /** The sessions and logs stand here. */
  readonly home?: string
}
/** A folder, a home and a model; the daemon is started by `serve`, as often as one likes. */
export async function settle({ config = 'plugins: [tool-fs, tool-bash, model-openai]\n', files = {}, env = {}, home }: Setting = {}): Promise<Places & { serve(options?: Serving): Promise<Served>; hx(args: readonly string[]): ChildProcess }> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hx-soak-'))), folder = join(root, 'work'), at = home ?? join(root, 'hx')
  mkdirSync(folder)
  for (const [name, text] of Object.entries({ 'harness.config.yaml': config, 'note.txt': 'a note\n', ...files })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const model = spawn(process.execPath, [MODEL], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = await once(createInterface({ input: model.stdout }), 'line') as [string]
  const modelUrl = `http://127.0.0.1:${port}/v1`
  const whole = { PATH: process.env['PATH'] ?? '', HOME: join(root, 'home'), HX_HOME: at, LANG: 'C.UTF-8', OPENAI_BASE_URL: modelUrl, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'load', ...env }
  const begun = new Set<ChildProcess>()
  const hx = (args: readonly string[], prefix: readonly string[] = []) => {
    const [command, ...rest] = [...prefix, process.execPath, '--max-semi-space-size=8', CLI, ...args]
    const child = spawn(command!, rest, { cwd: folder, env: whole, stdio: ['ignore', 'pipe', 'pipe'] })
    begun.add(child.once('exit', () => { begun.delete(child) }))
    return child
  }
  const places: Places = {
    folder, home: at, sessions: join(at, 'state', 'sessions'), logs: join(at, 'state', 'logs'), modelPid: model.pid!, modelUrl,
    async close() {
      await Promise.all([...begun, model].map(child => { child.kill('SIGKILL'); return child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined }))
      rmSync(root, { recursive: true, force: true })
    },
  }
  return { ...places, hx, serve: options => serve(places, prefix => hx(['--trust', 'start', '--foreground'], prefix), options) }
}
interface Serving { /** Words before the command: a shell that sets a limit, say. */ readonly prefix?: readonly string[] }

async function serve(places: Places, begin: (prefix?: readonly string[]) => ChildProcess, { prefix }: Serving = {}): Promise<Served> {
  const started = performance.now(), child = begin(prefix), said = { stderr: '' }
  child.stdout!.resume()
  child.stderr!.setEncoding('utf8').on('data', (text: string) => { said.stderr = (said.stderr + text).slice(-100_000) })
  const door = await ready(places.home, child, () => said.stderr)
  const readyMs = performance.now() - started
  const open: Served['open'] = (path, { method = 'GET', body, headers, signal } = {}) => new Promise((resolve, reject) => {
    request({ socketPath: door.socket, method, path, agent: false, ...(signal && { signal }), headers: { [HEADERS.authorization]: `Bearer ${door.token}`, [HEADERS.protocol]: String(PROTOCOL), ...(body && { 'content-type': 'application/json' }), ...headers } }, resolve)
      .on('error', reject).end(body && JSON.stringify(body))
  })
  const follow: Served['follow'] = async function* (path, asked) {
    const response = await open(path, asked)
    if (response.statusCode !== 200) throw new Error(`${path} answered ${response.statusCode}`)
    yield* told(response)
  }
  const kill: Served['kill'] = async signal => {
    const begun = performance.now(), gone = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
    child.kill(signal)
    await gone
    return { code: child.exitCode, ms: performance.now() - begun }
  }
  return {
    ...places, child, pid: door.pid, readyMs, stderr: () => said.stderr, open, follow, kill,
    async ask(path, asked) {
      const response = await open(path, asked)
      let text = ''
      for await (const piece of response.setEncoding('utf8')) text += piece as string
      return { status: response.statusCode!, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
    },
    run: (prompt, more = {}, asked = {}) => follow(ROUTES.runs, { method: 'POST', body: { prompt, cwd: places.folder, ...more }, ...asked }),
    stop: async () => { await kill('SIGTERM') },
  }
}

/** Asks for readiness until it is there; its token is new each time. */
async function ready(home: string, child: ChildProcess, stderr: () => string): Promise<{ socket: string; token: string; pid: number }> {
  const run = join(home, 'run')
  for (const deadline = performance.now() + PATIENCE_MS; performance.now() < deadline; await sleep(5)) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the daemon ended with ${child.exitCode ?? child.signalCode}: ${stderr()}`)
    try {
      const name = readdirSync(run).find(file => file.endsWith('.sock'))!, socket = join(run, name), token = readFileSync(socket.replace('.sock', '.token'), 'utf8')
      const status = await new Promise<{ pid: number } | undefined>((resolve, reject) => {
        request({ socketPath: socket, path: ROUTES.status, agent: false, headers: { [HEADERS.authorization]: `Bearer ${token}`, [HEADERS.protocol]: String(PROTOCOL) } }, response => {
          let text = ''
          response.setEncoding('utf8').on('data', piece => { text += piece }).on('end', () => { resolve(response.statusCode === 200 ? JSON.parse(text) : undefined) })
        }).on('error', reject).end()
      })
      if (status) return { socket, token, pid: status.pid }
    } catch { /* not there yet, or what is there was left by the one before */ }
  }
  throw new Error(`the daemon was not ready within ${PATIENCE_MS / 1000} s: ${stderr()}`)
}

export async function* told(response: IncomingMessage): AsyncGenerator<Told> {
  let rest = ''
  for await (const piece of response.setEncoding('utf8')) {
    const blocks = (rest + (piece as string)).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const field = (name: string) => block.split('\n').find(line => line.startsWith(`${name}: `))?.slice(name.length + 2)
      const id = field('id')
      yield { event: field('event')!, id: id === undefined ? undefined : Number(id), data: JSON.parse(field('data')!) }
    }
  }
}

/** What stands in the file of a session: its events, and how many whole lines are none. An unfinished last line is torn. */
export function logOf({ sessions }: Places, id: string): { readonly events: readonly SessionEvent[]; readonly unreadable: number; readonly torn: boolean } {
  const lines = readFileSync(join(sessions, `${id}.jsonl`), 'utf8').split('\n'), torn = lines.pop() !== ''
  let unreadable = 0
  const events = lines.flatMap(line => { try { return [JSON.parse(line) as SessionEvent] } catch { unreadable++; return [] } })
  return { events, unreadable, torn }
}

/** Resident memory in MB, now and at most. Linux. */
export function memoryOf(pid: number): { readonly now: number; readonly most: number } {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8'), value = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)![1]) / 1024
  return { now: value('VmRSS'), most: value('VmHWM') }
}
/** Milliseconds of `node -e 0`, the middle of some: what a start is measured against where others use the machine too. */
export async function bareNode(): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < 5; n++) {
    const begun = performance.now()
    await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
    times.push(performance.now() - begun)
  }
  return spread(times).p50
}
/** Seconds of processor time that a process has taken. Linux, whose ticks are hundredths. */
export function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length
/** Of numbers: the middle one, the one that 99 of 100 are below, the largest. */
export function spread(values: readonly number[]): { readonly p50: number; readonly p99: number; readonly max: number } {
  const sorted = [...values].sort((a, b) => a - b), at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}
export async function until(look: () => unknown, everyMs = 10): Promise<void> {
  for (const deadline = performance.now() + PATIENCE_MS; !await look(); await sleep(everyMs)) if (performance.now() > deadline) throw new Error('it did not come within a minute')
}
