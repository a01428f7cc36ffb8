/** A daemon in the background as a user has one, with a scripted model, and plain requests over its socket; stopped when the test ends. */
import { readFileSync, readdirSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { HEADERS, PROTOCOL } from '../../core/daemon/protocol.js'
import { place, type Place } from './hx.js'
import { startScriptedModel } from './scripted-model.js'

type Script = Parameters<typeof startScriptedModel>[0]
export type ScriptedModel = Awaited<ReturnType<typeof startScriptedModel>>
export interface Told { readonly event: string; readonly id: number | undefined; readonly data: any }   // what a stream brings is what the test looks at
export interface RunningDaemon extends Place {
  readonly model: ScriptedModel
  readonly socket: string
  open(path: string, options?: { method?: string; body?: object; headers?: Record<string, string> }): Promise<IncomingMessage>
  /** The answer as JSON, with its status. */
  ask(path: string, options?: { method?: string; body?: object }): Promise<{ status: number; headers: IncomingMessage['headers']; body: any }>
  /** The events of a stream, to its end. */
  follow(path: string, headers?: Record<string, string>, body?: object): AsyncGenerator<Told>
}

export async function daemon(script: Script, files: Record<string, string>, env: Record<string, string> = {}): Promise<RunningDaemon> {
  const model = await startScriptedModel(script)
  const here = place(files)
  const shell = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted', ...env }
  onTestFinished(async () => {
    await here.hx(['stop'])
    await model.close()
  })
  const started = await here.hx(['start', '--trust'], { env: shell })
  expect(started).toMatchObject({ code: 0 })
  const open: RunningDaemon['open'] = (path, { method = 'GET', body, headers } = {}) => new Promise((resolve, reject) => {
    const { socket, token } = endpoint(here)
    const sent = request({ socketPath: socket, method, path, agent: false, headers: { [HEADERS.authorization]: `Bearer ${token}`, [HEADERS.protocol]: String(PROTOCOL), ...(body && { 'content-type': 'application/json' }), ...headers } }, resolve)
    sent.on('error', reject).end(body && JSON.stringify(body))
  })
  return {
    ...here, model, socket: endpoint(here).socket, open,
    hx: (args, options = {}) => here.hx(args, { ...options, env: { ...shell, ...options.env } }),
    start: (args, options = {}) => here.start(args, { ...options, env: { ...shell, ...options.env } }),
    async ask(path, options) {
      const response = await open(path, options)
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      return { status: response.statusCode!, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
    },
    async* follow(path, headers, body) {
      let rest = ''
      for await (const chunk of (await open(path, { ...(headers && { headers }), ...(body && { method: 'POST', body }) })).setEncoding('utf8')) {
        const blocks = (rest + chunk).split('\n\n')
        rest = blocks.pop()!
        for (const block of blocks) {
          const field = (name: string) => block.split('\n').find(line => line.startsWith(`${name}: `))?.slice(name.length + 2)
          const id = field('id')
          yield { event: field('event')!, id: id === undefined ? undefined : Number(id), data: JSON.parse(field('data')!) }
        }
      }
    },
  }
}

/** Where the one daemon of a place is met. */
export function endpoint({ env }: Pick<Place, 'env'>): { run: string; socket: string; token: string } {
  const run = join(env['HX_HOME']!, 'run'), name = readdirSync(run).find(file => file.endsWith('.sock'))!
  return { run, socket: join(run, name), token: readFileSync(join(run, name.replace('.sock', '.token')), 'utf8') }
}
