import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { basename, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HEADERS, PROTOCOL } from '../../core/daemon/protocol.js'
import { daemon, endpoint, type RunningDaemon } from '../support/daemon.js'
import { place, until } from '../support/hx.js'

const FILES = { 'harness.config.yaml': 'plugins: [tool-fs, model-openai, model-offline]\n' }
const pidOf = async ({ ask }: RunningDaemon) => (await ask('/v1/status')).body.pid as number
const ends = (pid: number) => until(() => { try { process.kill(pid, 0); return false } catch { return true } })
async function crash(one: RunningDaemon) {
  const pid = await pidOf(one)
  process.kill(pid, 'SIGKILL')
  await ends(pid)
}

describe('a plugin that a daemon could not load', () => {
  it('is named by hx start and before a task, since a client would hear of it nowhere else', async () => {
    const here = place({ 'harness.config.yaml': 'agent: { model: offline }\nplugins: [guard, tool-fs, model-offline]\n', 'plugins/guard.ts': 'export const name = (', 'README.md': '# x\n' })
    onTestFinished(async () => { await here.hx(['stop']) })
    expect((await here.hx(['start', '--trust'])).stderr).toContain('hx: failed: guard; see "hx plugins"\n')
    const { code, stderr } = await here.hx(['agent', 'Read README.md'])
    expect([code, stderr]).toEqual([0, expect.stringContaining('hx: failed: guard; see "hx plugins"\n')])
    expect((await here.hx(['agent', '--json', 'Read README.md'])).stderr).not.toContain('guard')
  })
})

describe('a daemon whose files somebody cleans up or spoils', () => {
  it('puts them back and can be met again, and who was connected stays so: the socket, the token, the whole folder', { timeout: 60_000 }, async () => {
    const one = await daemon(['first', { hang: 'body' }, '.sock', '.token', 'all'], FILES), { run } = endpoint(one)
    await one.hx(['agent', 'hi'])
    const pid = await pidOf(one), following = one.start(['agent', 'wait'])
    await until(() => one.model.requests.length === 2)
    const log = join(one.env['HX_HOME']!, 'state', 'logs', basename(one.socket).replace('.sock', '.log'))
    const putBack = () => readFileSync(log, 'utf8').split('put back, so that this daemon can be met again').length - 1
    for (const kind of ['.sock', '.token', 'all']) {
      const before = putBack()
      const file = join(run, readdirSync(run).find(name => name.endsWith(kind)) ?? '')
      rmSync(file, { recursive: true })
      if (kind !== 'all') writeFileSync(file, '', { mode: 0o600 })      // a disk that was full, a tool that writes over what it finds
      expect((await one.hx(['status'])).stderr).not.toContain('ended without being stopped')      // it runs, met or not
      await until(() => putBack() > before)
      expect(await one.hx(['agent', 'hello?'])).toMatchObject({ code: 0, stdout: `${kind}\n`, stderr: expect.not.stringContaining('crashed') as unknown })
      expect([await pidOf(one), following.child.exitCode]).toEqual([pid, null])
    }
    expect((await one.hx(['start'])).code).toBe(0)
    expect((await one.hx(['stop'])).code).toBe(0)
    expect(await following.ended).toMatchObject({ code: 1, stderr: expect.stringContaining('the host shuts down') as unknown })
    expect(readdirSync(run).filter(name => !name.endsWith('.strikes'))).toEqual([])
  })
})

describe('a file that becomes a pipe which nobody writes', () => {
  it('does not hold the daemon up, be it the config or a plugin: what was in force stays, and that is said', async () => {
    const here = place({ 'harness.config.yaml': 'agent: { model: offline }\nplugins: [guard, tool-fs, model-offline]\n', 'plugins/guard.ts': 'export function apply() {}\n', 'README.md': '# x\n' })
    onTestFinished(async () => { await here.hx(['stop']) })
    await here.hx(['start', '--trust'])
    const logs = join(here.env['HX_HOME']!, 'state', 'logs'), log = () => readdirSync(logs).filter(name => name.endsWith('.log')).map(name => readFileSync(join(logs, name), 'utf8')).join('')
    for (const [file, said] of [['plugins/guard.ts', 'could not be reloaded and keeps running as before'], ['harness.config.yaml', 'is not a file; the last good config stays in force']] as const) {
      const path = join(here.folder, file), text = readFileSync(path, 'utf8')
      expect(spawnSync('sh', ['-c', 'mkfifo "$0.pipe" && mv "$0.pipe" "$0"', path]).status).toBe(0)
      await until(() => log().includes(said))
      rmSync(path)
      writeFileSync(path, text)
    }
    expect(await here.hx(['agent', 'Read README.md'])).toMatchObject({ code: 0, stderr: expect.not.stringContaining('crashed') as unknown })
  })
})

describe('a daemon that crashed', () => {
  it('is started again by the next client, with the trust that it had, and its turn reads interrupted', async () => {
    const one = await daemon([{ hang: 'body' }, 'here again'], FILES)
    const session = (await one.hx(['agent', '--detach', 'wait'])).stdout.trim()
    await until(() => one.model.requests.length === 1)
    await crash(one)
    expect(await one.hx(['status'])).toMatchObject({ code: 1, stderr: expect.stringContaining('ended without being stopped') as unknown })
    const answered = await one.hx(['agent', '--session', session, 'hello?'])
    expect(answered).toMatchObject({ code: 0, stdout: 'here again\n', stderr: expect.stringContaining('is started again') as unknown })
    expect((await one.hx(['sessions', 'show', session])).stdout).toContain('interrupted')
    expect((await one.hx(['status'])).code).toBe(0)
  })
  it('is started once by clients that come at the same time', async () => {
    const one = await daemon(['a', 'b', 'c'], FILES)
    await crash(one)
    const answered = await Promise.all([1, 2, 3].map(() => one.hx(['agent', 'hi'])))
    expect(answered.map(({ code }) => code)).toEqual([0, 0, 0])
    const { stdout } = await one.hx(['logs'])
    expect(stdout.match(/listens on/g)).toHaveLength(2)
    expect(stdout).toMatch(/warn  daemon the daemon before this one \(pid \d+, version \S+\) ended without being stopped/)
  })
  it('is not started again after the third time, until somebody says start', { timeout: 60_000 }, async () => {
    const one = await daemon(() => 'hi', FILES)
    await crash(one)
    expect((await one.hx(['agent', 'hi'])).stderr).toContain('is started again')
    const { run } = endpoint(one), strikes = join(run, readdirSync(run).find(name => name.endsWith('.strikes'))!)
    const counted = JSON.parse(readFileSync(strikes, 'utf8')) as number[]
    expect(counted).toHaveLength(1)
    writeFileSync(strikes, JSON.stringify([...counted, ...counted, ...counted]))      // the second and the third are as the first
    await crash(one)
    expect(await one.hx(['agent', '--trust', 'hi'])).toMatchObject({ code: 0, stderr: expect.stringContaining('is not started again') as unknown })
    expect((await one.hx(['status'])).code).toBe(1)
    expect((await one.hx(['start', '--trust'])).code).toBe(0)
    await crash(one)
    expect((await one.hx(['agent', 'hi'])).stderr).toContain('is started again')
  })
  it('stays down when it was stopped, and leaves nothing', async () => {
    const one = await daemon(['in process'], FILES)
    const { run } = endpoint(one)
    await one.hx(['stop'])
    expect(readdirSync(run)).toEqual([])
    expect(await one.hx(['agent', '--trust', 'hi'])).toMatchObject({ code: 0, stdout: 'in process\n' })
    expect((await one.hx(['status'])).code).toBe(1)
  })
})

describe('hx restart', () => {
  it('waits for the turns that run, takes no new one meanwhile, and says how many', async () => {
    let release!: (reply: string) => void
    const held = new Promise<string>(resolve => { release = resolve })
    const one = await daemon([() => held, 'new'], FILES)
    const before = await pidOf(one)
    const running = one.start(['agent', 'work'])
    await until(() => one.model.requests.length === 1)
    const restarting = one.start(['restart'])
    await until(() => restarting.output().stderr.includes('1 turn is running'))
    const refused = await one.ask('/v1/runs', { method: 'POST', body: { prompt: 'me too', cwd: one.folder } })
    expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '5' }, body: { error: { code: 'daemon_busy' } } })
    release('done')
    expect(await running.ended).toEqual({ code: 0, signal: null, stderr: '', stdout: 'done\n' })
    expect((await restarting.ended).code).toBe(0)
    expect(await pidOf(one)).not.toBe(before)
    expect((await one.hx(['agent', 'hi'])).stdout).toBe('new\n')      // trusted as before
  })
  it('ends turns with --now, and starts one where none runs', async () => {
    const one = await daemon([{ hang: 'body' }], FILES)
    const running = one.start(['agent', 'work'])
    await until(() => one.model.requests.length === 1)
    expect((await one.hx(['restart', '--now'])).code).toBe(0)
    expect((await running.ended).code).toBe(1)
    await one.hx(['stop'])
    expect((await one.hx(['restart', '--trust'])).code).toBe(0)
    expect((await one.hx(['status'])).code).toBe(0)
  })
  it('takes the keys of this shell; before it, hx agent says that they are not the daemon\'s, and shows none', async () => {
    const one = await daemon(['a', 'b', 'c'], FILES)
    expect((await one.hx(['agent', 'hi'])).stderr).not.toContain('OPENAI_API_KEY')
    const env = { OPENAI_API_KEY: 'hx-canary-2' }
    const { stderr } = await one.hx(['agent', 'hi'], { env })
    expect(stderr).toContain('OPENAI_API_KEY of this shell is not the daemon\'s')
    expect(stderr).not.toContain('canary')
    expect(JSON.stringify((await one.ask('/v1/keys')).body)).not.toContain('canary')
    await one.hx(['restart'], { env })
    expect((await one.hx(['agent', 'hi'], { env })).stderr).not.toContain('OPENAI_API_KEY')
    expect(one.model.requests.at(-1)!.headers.authorization).toBe('Bearer hx-canary-2')
  })
})

describe('a daemon of another version', () => {
  it('is told of with what runs in it, and can be stopped whatever protocol it speaks', async () => {
    const one = await daemon([], FILES)
    await one.hx(['stop'])
    let protocol = PROTOCOL
    const other = createServer((request, response) => {
      const old = protocol !== PROTOCOL && request.url !== '/v1/stop'
      response.writeHead(old ? 426 : 200, { [HEADERS.protocol]: String(protocol), [HEADERS.version]: '0.0.1', 'content-type': 'application/json' })
      if (request.url === '/v1/stop') stopped = true
      response.end(JSON.stringify(old ? { error: { code: 'protocol_mismatch', message: 'daemon runs 0.0.1 and speaks protocol 0' } } : request.url === '/v1/stop' ? { stopping: true, turns: 0 } : { version: '0.0.1', sessions: 2, config: { state: 'in force' }, pid: 1, uptimeMs: 1, plugins: 0, reloads: 0, rssBytes: 0, heapBytes: 0, loopDelayP99Ms: 0 }))
    })
    let stopped = false
    const { hx } = one
    await new Promise<void>(resolve => other.listen(one.socket, resolve))
    onTestFinished(() => { other.close() })
    writeFileSync(one.socket.replace('.sock', '.token'), 'secret'.repeat(8), { mode: 0o600 })
    expect((await hx(['status'])).stderr).toMatch(/daemon runs 0\.0\.1, hx is \S+; 2 turns are running; "hx restart" waits for them/)
    protocol = 0
    expect(await hx(['status'])).toMatchObject({ code: 1, stderr: expect.stringContaining('protocol 0') as unknown })
    expect((await hx(['stop'])).code).toBe(0)
    expect(stopped).toBe(true)
  })
})
