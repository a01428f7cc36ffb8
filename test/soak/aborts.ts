/** How long an abort takes to reach each thing that a turn may wait for: the model's stream, a tool's signal, a handler's signal. Measured inside the daemon and at the model, from the moment the request to abort was sent. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { settle, spread, until } from '../support/served.js'
import type { Soak } from './soak.js'

export interface AbortFigures { readonly model: readonly number[]; readonly tool: readonly number[]; readonly hook: readonly number[] }

/** Writes down, in a clock that all processes share, when its signals abort. */
const WATCHER = `
import { appendFileSync } from 'node:fs'
export const name = 'watcher'
const note = what => { appendFileSync('noted', what + ' ' + process.hrtime.bigint() + '\\n') }
const held = (what, signal) => new Promise(done => { note('began-' + what); signal.addEventListener('abort', () => { note(what); done('') }) })
export function apply(ctx) {
  ctx.tools.register({ name: 'wait', description: 'Waits.', parameters: { type: 'object' }, execute: (_, { signal }) => held('tool', signal) })
  ctx.on('agent/request', async (request, next) => { request.signal.addEventListener('abort', () => { note('model') }); note('began-model'); return next() })
  ctx.on('agent/user-prompt-submit', ({ prompt, signal }) => prompt === 'hook' ? held('hook', signal).then(() => undefined) : undefined, { timeout: 60000 })
}
`
export const soak: Soak = async ({ say, check }) => {
  const figures = await abortEach({ times: 30 })
  const shown = Object.entries(figures).map(([what, times]) => { const { p50, max } = spread(times); check(p50 < 50, `an abort reaches the ${what} after ${p50.toFixed(0)} ms, the limit is 50`); return `${what} ${p50.toFixed(0)} ms (at most ${max.toFixed(0)})` })
  say(`an abort reaches the ${shown.join(', the ')}`)
}

export async function abortEach({ times }: { times: number }): Promise<AbortFigures> {
  const place = await settle({ config: 'plugins: [watcher, model-openai]\n', files: { 'plugins/watcher.ts': WATCHER } })
  const figures: { [K in keyof AbortFigures]: number[] } = { model: [], tool: [], hook: [] }
  const noted = () => { try { return readFileSync(join(place.folder, 'noted'), 'utf8').trim().split('\n').map(line => line.split(' ') as [string, string]) } catch { return [] } }
  const count = (what: string) => noted().filter(([name]) => name === what).length
  try {
    const served = await place.serve()
    for (const [what, prompt] of [['model', 'hang'], ['tool', 'call 1 wait {}'], ['hook', 'hook']] as const) {
      for (let n = 0; n < times; n++) {
        const begun = count(`began-${what}`), ended = count(what)
        const { body: { session } } = await served.ask('/v1/runs', { method: 'POST', body: { prompt, cwd: served.folder, detach: true } })
        await until(() => count(`began-${what}`) > begun, 5)
        const sent = process.hrtime.bigint()
        const answer = await served.ask(`/v1/sessions/${session}/abort`, { method: 'POST', body: { reason: 'enough' } })
        if (answer.body.aborted !== true) throw new Error('there was nothing to abort')
        await until(() => count(what) > ended, 5)
        figures[what].push(Number(BigInt(noted().findLast(([name]) => name === what)![1]) - sent) / 1e6)
        await until(async () => (await served.ask('/v1/status')).body.sessions === 0)
      }
    }
    await served.stop()
    return figures
  } finally { await place.close() }
}
