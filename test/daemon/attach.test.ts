import { createConnection, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunEvent } from '../../core/agent/services.js'
import { connectDaemon } from '../../core/cli/socket-client.js'
import { daemon, type Told } from '../support/daemon.js'
import { until } from '../support/hx.js'

const FILES = { 'harness.config.yaml': 'plugins: [tool-fs, tool-bash, model-openai, model-offline]\n' }
const slow = { text: 'one two three four five six seven eight nine ten', deltaSize: 4, chunkMs: 40 }
const seqs = (told: readonly Told[]) => told.flatMap(({ event, id }) => event === 'log' ? [id] : [])
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1)

/** A reply that comes when the test says so. */
function held(reply: typeof slow) {
  let release!: () => void
  const said = new Promise<void>(resolve => { release = resolve })
  return { script: [() => said.then(() => reply)], release }
}

describe('a turn and its clients', () => {
  it('goes on when its client leaves, and is followed to its end by another', async () => {
    const { script, release } = held(slow), { hx, start, ask } = await daemon(script, FILES)
    const first = start(['agent', '--json', 'count'])
    const session = await until(() => /"id":"([^"]+)"/.exec(first.output().stdout)?.[1])
    first.child.kill('SIGKILL')
    await first.ended
    expect((await ask('/v1/status')).body.sessions).toBe(1)
    release()
    const attached = await hx(['attach', session])
    expect(attached).toMatchObject({ code: 0, stdout: `${slow.text}\n` })
  })
  it('is started with --detach, which prints its session and nothing else', async () => {
    const { hx } = await daemon([slow], FILES)
    const detached = await hx(['agent', '--detach', 'count'])
    expect(detached.code).toBe(0)
    const session = detached.stdout.trim()
    expect(session).toMatch(/^\S+$/)
    const lines = (await hx(['attach', '--json', '--after', '0', session])).stdout.trim().split('\n').map(line => JSON.parse(line) as { seq: number; type: string })
    expect(lines.map(line => line.seq)).toEqual(upTo(lines.length))
    expect(lines.at(-1)!.type).toBe('turn-end')
    expect(await hx(['attach', session])).toMatchObject({ code: 0, stdout: `${slow.text}\n` })      // one that has ended is shown
  })
  it('goes on when an attached client is stopped with Ctrl-C', async () => {
    const { script, release } = held(slow), { hx, start } = await daemon(script, FILES)
    const session = (await hx(['agent', '--detach', 'count'])).stdout.trim()
    const attached = start(['attach', '--json', session])
    await until(() => attached.output().stdout.includes('turn-start'))
    attached.child.kill('SIGINT')
    expect(await attached.ended).toMatchObject({ code: 130 })
    release()
    expect(await hx(['attach', session])).toMatchObject({ code: 0, stdout: `${slow.text}\n` })
  })
  it('goes on when a client that waits behind it gives up, which ends that one\'s prompt alone', async () => {
    const { script, release } = held(slow), one = await daemon(script, FILES)
    const session = (await one.hx(['agent', '--detach', 'count'])).stdout.trim()
    const waiting = one.follow('/v1/runs', {}, { prompt: 'and then', cwd: one.folder, session })
    const { event, data } = (await waiting.next()).value as Told
    expect([event, data.session]).toEqual(['session', session])
    const stop = (run: string) => one.ask(`/v1/sessions/${session}/abort`, { method: 'POST', body: { reason: 'given up', run } })
    expect((await stop('nobody')).body).toEqual({ aborted: false })
    expect((await stop(data.run)).body).toEqual({ aborted: true })
    release()
    const rest: Told[] = []
    for await (const told of waiting) rest.push(told)
    expect(rest.at(-1)).toMatchObject({ event: 'result', data: { turn: 2, reason: 'aborted', message: 'given up' } })
    expect(one.model.requests).toHaveLength(1)
    expect(await one.hx(['sessions', 'export', session, '--format', 'markdown'])).toMatchObject({ code: 0, stdout: expect.stringContaining(slow.text) as unknown })
    expect((await stop(data.run)).body).toEqual({ aborted: false })
  })
  it('says that there is no daemon, no session, and nobody who could go on', async () => {
    const { hx } = await daemon([], FILES)
    expect(await hx(['attach', 'nothing'])).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no session "nothing"') as unknown })
    expect(await hx(['agent', '--detach', '--ephemeral', 'x'])).toMatchObject({ code: 2 })
    await hx(['stop'])
    expect(await hx(['attach', 'nothing'])).toMatchObject({ code: 1, stderr: expect.stringContaining('no daemon is running') as unknown })
    expect(await hx(['agent', '--trust', '--detach', 'x'])).toMatchObject({ code: 1, stderr: expect.stringContaining('hx start') as unknown })
  })
})

/** Longer than the daemon waits for a reader that takes nothing (5 s). */
const STALLED_MS = 6000
/** `/weigh` says how many bytes are in use after a collection. */
const WEIGH = `import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
export const name = 'weigh'
export function apply(ctx) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  ctx.commands.register({ name, description: 'Bytes in use.', run: async () => {
    for (let n = 0; n < 3; n++) { await new Promise(done => { ctx.setTimeout(done, 10) }); collect() }
    const { heapUsed, external } = process.memoryUsage()
    return String(heapUsed + external)
  } })
}
`

describe('the events of a session', () => {
  it('resume behind any line without a gap or a duplicate, however often the connection is lost', async () => {
    const { script, release } = held(slow), { hx, follow } = await daemon(script, FILES)
    const session = (await hx(['agent', '--detach', 'count'])).stdout.trim()
    const all: (number | undefined)[] = [], text: string[] = []
    for (let ended = false, n = 0; !ended; n++) {
      const left = 1 + n % 3                                 // leaves after so many events
      let seen = 0
      for await (const told of follow(`/v1/sessions/${session}/events`, all.length > 0 ? { 'last-event-id': String(all.at(-1)) } : undefined)) {
        if (told.event === 'log') all.push(told.id)
        if (told.data.type === 'request') release()           // from here on it happens while it is read
        if (told.event === 'delta') text.push(told.data.text)
        ended = told.event === 'end'
        if (ended || ++seen === left) break
      }
    }
    expect(all).toEqual(upTo(all.length))
    expect(text.length).toBeGreaterThan(0)
  })
  it('come from the start with a reset when the place of the client is not in the log', async () => {
    const { hx, follow } = await daemon(['hello'], FILES)
    const session = (await hx(['agent', '--detach', 'hi'])).stdout.trim()
    await hx(['attach', session])
    const told: Told[] = []
    for await (const one of follow(`/v1/sessions/${session}/events?after=5000`)) told.push(one)
    expect(told[0]).toMatchObject({ event: 'reset', data: { after: 5000 } })
    expect(seqs(told)).toEqual(upTo(seqs(told).length))
    expect(told.at(-1)!.event).toBe('end')
  })
  it('go on through later turns with follow, and an archive', async () => {
    const { hx, follow } = await daemon(['one', 'two'], FILES)
    const session = (await hx(['agent', '--detach', 'hi'])).stdout.trim()
    const types: string[] = []
    for await (const { event, data } of follow(`/v1/sessions/${session}/events?follow=1`)) {
      if (event === 'log') types.push(data.type)
      if (data.type === 'turn-end' && data.turn === 1) void hx(['agent', '--session', session, 'again'])
      if (data.type === 'turn-end' && data.turn === 2) void hx(['sessions', 'archive', session])
      if (data.type === 'archived') break
    }
    expect(types.filter(type => type === 'turn-end')).toHaveLength(2)
  })
  it('refuse an unknown session and a wrong place before anything is streamed', async () => {
    const { ask } = await daemon([], FILES)
    expect(await ask('/v1/sessions/nothing/events')).toMatchObject({ status: 400, body: { error: { code: 'session_missing' } } })
    expect(await ask('/v1/sessions/nothing/events?after=x')).toMatchObject({ status: 400, body: { error: { code: 'usage' } } })
    expect(await ask('/v1/sessions/nothing/events?since=1')).toMatchObject({ status: 400, body: { error: { code: 'usage' } } })
  })
  it('wait for no reader: one that stops reading is dropped, keeps nothing in memory and resumes', { timeout: 60_000 }, async () => {
    const big = 'x'.repeat(500_000), TURNS = 4
    /** Bytes that go when its time is over: of a client that is stuck, or has left at once. What a turn leaves for a moment is in both. */
    const held = async (how: 'pause' | 'destroy') => {
      const { open, ask, follow, folder } = await daemon(() => ({ text: big, deltaSize: 50_000 }), { 'harness.config.yaml': 'plugins: [weigh, tool-fs, model-openai]\n', 'plugins/weigh.ts': WEIGH })
      const turn = async (more: object) => {
        let session = ''
        for await (const { event, data } of follow('/v1/runs', {}, { prompt: 'more', cwd: folder, ...more })) if (event === 'session') session = data.session
        return session
      }
      const session = await turn({})
      const weight = async () => Number((await ask('/v1/commands/weigh', { method: 'POST', body: { args: '', cwd: folder } })).body.text)
      const stuck = await open(`/v1/sessions/${session}/events?follow=1`)
      let dropped = false
      stuck.once('close', () => { dropped = true }).on('error', () => {})
      stuck[how]()
      await turn({ session })
      const blocked = performance.now()                             // no buffer holds a whole turn
      for (let n = 1; n < TURNS; n++) await turn({ session })
      const withIt = await weight()
      await until(() => performance.now() - blocked > STALLED_MS)    // a paused stream can't see that it was closed
      await until(() => { stuck.resume(); return dropped }, 100)
      const bytes = withIt - await weight()
      const told: Told[] = []
      for await (const one of follow(`/v1/sessions/${session}/events`)) told.push(one)
      expect(seqs(told)).toEqual(upTo(seqs(told).length))
      return bytes
    }
    const [stuck, gone] = await Promise.all([held('pause'), held('destroy')])
    expect(stuck - gone).toBeLessThan(TURNS * big.length)            // it was sent twice that, in deltas and in the log
  })
})

describe('a client whose connection is lost again and again', () => {
  /** Passes everything on, and cuts each connection after so many bytes of the answer. */
  async function flaky(one: { socket: string; folder: string }, bytes: number) {
    const path = join(one.folder, 'flaky.sock')
    let cuts = 0
    const proxy = createServer(client => {
      const up = createConnection(one.socket)
      let passed = 0
      client.on('error', () => {}).pipe(up)
      up.on('error', () => {}).on('close', () => { client.destroy() }).on('data', chunk => {
        client.write(chunk)
        passed += chunk.length
        if (passed > bytes) { cuts++; client.destroy(); up.destroy() }
      })
    })
    await new Promise<void>(resolve => proxy.listen(path, resolve))
    onTestFinished(() => { proxy.close() })
    const client = await connectDaemon({ folder: dirname(one.socket), lock: '', mark: '', strikes: '', socket: path, token: one.socket.replace('.sock', '.token') }, { anyVersion: false, note: () => {} })
    return { client: client!, cuts: () => cuts }
  }
  it('sees every line of its run once, in order, and its result', async () => {
    const one = await daemon([{ ...slow, chunkMs: 20 }], FILES)
    const { client, cuts } = await flaky(one, 800)
    const handle = await client.run({ prompt: 'count', cwd: one.folder })
    const events: RunEvent[] = []
    for await (const event of handle.events) events.push(event)
    expect(await handle.result).toMatchObject({ reason: 'completed', text: slow.text, unanswered: false, turn: 1 })
    const all = events.flatMap(event => 'seq' in event ? [event.seq] : [])
    expect(all).toEqual(upTo(all.length))
    expect(cuts()).toBeGreaterThan(1)
  })
  it('gives up with a sentence when the daemon is gone', async () => {
    const one = await daemon([{ hang: 'body' }], FILES)
    const { client } = await flaky(one, 1_000_000)
    const handle = await client.run({ prompt: 'wait', cwd: one.folder })
    await until(() => one.model.requests.length > 0)
    const { pid } = (await one.ask('/v1/status')).body as { pid: number }
    process.kill(pid, 'SIGKILL')
    for await (const _ of handle.events) { /* to its end */ }
    await expect(handle.result).rejects.toThrow(/the connection to the daemon was lost; if it still runs, so does the turn: hx attach/)
  })
})

describe('prompts to a session whose turn runs', () => {
  it('wait in order, or are refused with --if-idle', async () => {
    let release!: (reply: string) => void
    const held = new Promise<string>(resolve => { release = resolve })
    const { hx, start, model } = await daemon([() => held, 'second', 'third'], FILES)
    const session = (await hx(['agent', '--detach', 'first'])).stdout.trim()
    await until(() => model.requests.length > 0)
    const refused = await hx(['agent', '--session', session, '--if-idle', 'now'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('a turn runs') as unknown })
    const second = start(['agent', '--session', session, 'second'])
    expect(model.requests).toHaveLength(1)
    release('first')
    expect(await second.ended).toMatchObject({ code: 0, stdout: 'second\n' })
    expect(await hx(['agent', '--session', session, '--if-idle', 'third'])).toMatchObject({ code: 0, stdout: 'third\n' })
    const log = (await hx(['sessions', 'show', '--json', session])).stdout.trim().split('\n').map(line => JSON.parse(line) as { type: string; turn?: number })
    expect(log.flatMap(({ type, turn }) => type === 'turn-start' || type === 'turn-end' ? [`${type} ${turn}`] : [])).toEqual([1, 2, 3].flatMap(n => [`turn-start ${n}`, `turn-end ${n}`]))
  })
  it('are taken by the turn that runs with --steer, whose end is shown', async () => {
    let release!: (reply: string) => void
    const held = new Promise<string>(resolve => { release = resolve })
    const { hx, start, model } = await daemon([() => held, 'in blue', 'alone'], FILES)
    const session = (await hx(['agent', '--detach', 'paint'])).stdout.trim()
    await until(() => model.requests.length > 0)
    const steering = start(['agent', '--steer', '--session', session, '--json', 'rather in blue'])
    await until(() => steering.output().stderr.includes('handed to the turn that runs'))
    release('red')
    const { code, stdout } = await steering.ended
    expect(code).toBe(0)
    expect(JSON.parse(stdout.trim().split('\n').at(-1)!)).toMatchObject({ type: 'turn-end', turn: 1 })
    expect(model.requests[1]!.body.messages.slice(-2)).toMatchObject([{ role: 'assistant', content: 'red' }, { role: 'user', content: 'rather in blue' }])
    expect((await hx(['sessions', 'show', session])).stdout).toContain('> rather in blue')
    expect(await hx(['agent', '--steer', '--session', session, 'more'])).toMatchObject({ code: 0, stdout: 'alone\n' })       // none runs: a turn as any
    expect((await hx(['agent', '--steer', 'more'])).code).toBe(2)
  })
})
