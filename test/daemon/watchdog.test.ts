import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { NOBODY_MS } from '../../core/daemon/watchdog.js'
import { folder } from '../support/folder.js'
import { place, until, type Place } from '../support/hx.js'

/** A plugin whose line 9 never gives the process back. `types` before it show that the line is that of the source. */
const stuck = (body: string, more = '') => `import type { Context } from 'harnessx'
import { execSync } from 'node:child_process'
interface Unused { readonly a: string
  readonly b: number }
${more}
export function apply(ctx: Context): void {
  const spin = () => {
    void execSync
    ${body}
  }
  START
}
`
const LOOP = 'for (;;) { if (Date.now() < 0) break }'
const at = (start: string, body: string) => stuck(body).replace('START', start)
/** Three lines, after which `still()` waits in native code for a writer who never comes: it takes no time from others. */
const STILL = `import { execFileSync } from 'node:child_process'\nimport { openSync } from 'node:fs'\nconst still = () => { execFileSync('mkfifo', [import.meta.filename + '.fifo']); openSync(import.meta.filename + '.fifo', 'r') }\n`
const inHandler = `ctx.on('agent/turn-start', () => { spin() })`
const CONFIG = 'plugins: [{ name: rude, required: true }, tool-fs, model-offline]\n'
const with_ = (code: string) => ({ 'harness.config.yaml': CONFIG, 'plugins/rude.ts': code, 'README.md': '# Demo\n' })

const crashes = ({ env }: Place) => readdirSync(join(env['HX_HOME']!, 'state', 'logs')).filter(name => name.includes('.crash-')).map(name => join(env['HX_HOME']!, 'state', 'logs', name))
async function up(code: string) {
  const here = place(with_(code))
  const daemon = here.start(['start', '--foreground', '--trust'])
  await until(() => daemon.output().stderr.includes('listens on'))
  return { here, daemon }
}

describe('a plugin that never gives the process back', () => {
  it('is named with its line, and the process ended: after an await, in a regular expression, in promises without end', { timeout: 60_000 }, async () => {
    const kinds = [
      ['await', at(`ctx.on('agent/turn-start', async () => { await new Promise(done => setTimeout(done, 5)); spin() })`, LOOP)],
      ['regex', at(inHandler, `;/^(a+)+$/.test('a'.repeat(50) + '!')`)],
      ['promises', at(inHandler, `const again = (): unknown => Promise.resolve().then(again); again()`)],
    ] as const
    await Promise.all(kinds.map(async ([kind, code]) => {
      const { here, daemon } = await up(code)
      await here.hx(['agent', '--detach', '--offline', 'Read README.md'])
      const { signal, stderr } = await daemon.ended
      expect([kind, signal, stderr]).toEqual([kind, 'SIGKILL', expect.stringMatching(/^hx: plugin "rude" is quarantined: it held the whole process up for \d/m)])
      if (kind !== 'promises') expect(stderr).toMatch(/for \d+\.\d s at \/.*plugins\/rude\.ts:9:\d+; mend it/)
      const [report] = crashes(here)
      expect(statSync(report!).mode & 0o777).toBe(0o600)
      expect(JSON.parse(readFileSync(report!, 'utf8'))).toMatchObject({ plugin: 'rude', version: expect.any(String) as unknown, pid: daemon.child.pid })
    }))
  })
  it('is named while it loads, at a start and when it is saved, and when native code does not come back', { timeout: 60_000 }, async () => {
    await Promise.all([
      (async () => {
        const { code, stderr } = await place(with_(at('spin()', LOOP))).hx(['start', '--trust'])
        expect([code, stderr]).toEqual([1, expect.stringMatching(/the daemon did not start: plugin "rude" is quarantined: .*rude\.ts:9:\d+/)])
      })(),
      (async () => {
        const { here, daemon } = await up(at('', LOOP))
        here.write('plugins/rude.ts', `${LOOP}\nexport function apply() {}\n`)
        expect((await daemon.ended).stderr).toMatch(/plugin "rude" is quarantined: .*rude\.ts:1:\d+/)
      })(),
      (async () => {
        const { here, daemon } = await up(at(inHandler, `execSync('sleep 20')`))
        await here.hx(['agent', '--detach', '--offline', 'Read README.md'])
        expect((await daemon.ended).stderr).toMatch(/plugin "rude" is quarantined: it held the whole process up for \d/)
      })(),
    ])
  })
  it('is named in native code after an await too, with the line where it waits for a process, else with its handler', { timeout: 60_000 }, async () => {
    const after = (body: string) => at(`ctx.on('agent/turn-start', async () => { await new Promise(done => setTimeout(done, 5)); spin() })`, body).replace(`'node:child_process'`, `'node:child_process'; import { pbkdf2Sync } from 'node:crypto'`)
    const slow = `pbkdf2Sync('a', 'b', 2e9, 64, 'sha512')`
    const kinds = [
      [after(`execSync('sleep 100')`), /held the whole process up for \d+\.\d s at \/.*plugins\/rude\.ts:9:\d+; mend it/],
      [after(`execSync('sleep 100 | cat')`), /at \/.*plugins\/rude\.ts:9:\d+; mend it/],
      [after(slow), /for \d+\.\d s in native code, in its handler of "agent\/turn-start" \(\/.*plugins\/rude\.ts:11:7\); mend it/],
    ] as const
    await Promise.all(kinds.map(async ([code, said]) => {
      const { here, daemon } = await up(code)
      await here.hx(['agent', '--detach', '--offline', 'Read README.md'])
      expect((await daemon.ended).stderr).toMatch(said)
    }))
  })
  it('is named with its file in native code of its top level and of the check of its config, and of its model with the line that registered it', { timeout: 60_000 }, async () => {
    const kinds = [
      [`await null\nstill()\nexport function apply() {}`, /in native code, in \/.*plugins\/rude\.ts; mend it/],
      [`export const Config = { '~standard': { version: 1, vendor: 'x', validate: async (value: unknown) => { await null; still(); return { value } } } }\nexport function apply() {}`, /in native code, in \/.*plugins\/rude\.ts; mend it/],
      [`import type { Context } from 'harnessx'\nexport function apply(ctx: Context) {\n  ctx.models.register({ id: 'rude', defaultModel: 'm', ready: () => true, async *stream() { yield { kind: 'text', text: 'a' }; await null; still() } })\n}`, /in native code, in its model "rude" \(\/.*plugins\/rude\.ts:6:\d+\); mend it/],
    ] as const
    await Promise.all(kinds.map(async ([code, said], kind) => {
      const { here, daemon } = await up(at('', LOOP))
      here.write('plugins/rude.ts', STILL + code)
      if (kind === 2) await until(async () => (await here.hx(['agent', '--detach', '--model', 'rude', 'Hello'])).code === 0)
      expect((await daemon.ended).stderr).toMatch(said)
    }))
  })
  it('is named in native code of a timer, of a tool, and of what it hung on the signal of a turn or of a call, with the line that registered it', { timeout: 60_000 }, async () => {
    const kinds = [
      [`  ctx.on('agent/turn-start', () => {\n    ctx.setTimeout(still, 1000)\n  })`, /in native code, in its timer \(\/.*plugins\/rude\.ts:6:\d+\); mend it/],
      [`  ctx.on('agent/turn-start', ({ signal }) => { signal.addEventListener('abort', still) })\n  ctx.on('agent/pre-step', () => new Promise(() => {}), { timeout: 60_000 })`, /in native code, in its handler of "agent\/turn-start" \(\/.*plugins\/rude\.ts:5:\d+\); mend it/],
      [`  ctx.tools.register({ name: 'read_file', description: 'x', parameters: { type: 'object', properties: { path: { type: 'string' } } }, override: true, execute: (_, run) => new Promise(() => {\n    AbortSignal.any([run.signal, ctx.signal]).addEventListener('abort', still)\n  }) })`, /in native code, in its tool "read_file" \(\/.*plugins\/rude\.ts:5:\d+\); mend it/],
    ] as const
    await Promise.all(kinds.map(async ([code, said], kind) => {
      const { here, daemon } = await up(`${STILL}export function apply(ctx) {\n${code}\n}\n`)
      const session = (await here.hx(['agent', '--detach', '--offline', 'Read README.md'])).stdout.trim()
      if (kind === 2) await until(async () => (await here.hx(['sessions', 'show', session, '--json'])).stdout.includes('tool-intent'))
      if (kind > 0) await here.hx(['sessions', 'abort', session])
      expect((await daemon.ended).stderr).toMatch(said)
    }))
  })
  it('is named by the innermost code of a plugin, whoever called that', { timeout: 60_000 }, async () => {
    const here = place({
      'harness.config.yaml': 'plugins: [rude, user, tool-fs, model-offline]\n', 'README.md': '# Demo\n',
      'plugins/rude.ts': `export const provides = ['spinner']\nexport function apply(ctx) { ctx.provide('spinner', { spin() { ${LOOP} } }) }\n`,
      'plugins/user.ts': `export const inject = ['spinner']\nexport function apply(ctx) { ctx.on('agent/turn-start', async () => { await null; ctx.spinner.spin() }) }\n`,
    })
    const daemon = here.start(['start', '--foreground', '--trust'])
    await until(() => daemon.output().stderr.includes('listens on'))
    await here.hx(['agent', '--detach', '--offline', 'Read README.md'])
    expect((await daemon.ended).stderr).toMatch(/plugin "rude" is quarantined: .*plugins\/rude\.ts:2:/)
  })
  it('can not be named where nobody of them is at work: the process is ended all the same, after a limit, with a report', { timeout: 60_000 }, async () => {
    const { path } = folder()
    const child = spawn(process.execPath, [fileURLToPath(new URL('../support/processes/stuck.mjs', import.meta.url)), '3000', path], { stdio: ['pipe', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { said += chunk.toString() })
    expect((await once(child, 'close') as [unknown, unknown])[1]).toBe('SIGKILL')
    expect(said).toMatch(/^stuck now\nhx: the whole process was held up for \d+\.\d s, and no plugin could be named; this process ends, the next command starts it again\n$/)
    const report = readdirSync(path).filter(name => name.includes('.crash-')).map(name => JSON.parse(readFileSync(join(path, name), 'utf8')) as { plugin?: string; heldMs: number })
    expect(report).toEqual([expect.objectContaining({ heldMs: expect.any(Number) as unknown })])
    expect([report[0]!.plugin, report[0]!.heldMs > 3000, existsSync(join(path, 'quarantine.json')), NOBODY_MS]).toEqual([undefined, true, false, 30_000])
  })
  it('is not loaded again: the next command starts the daemon, a required one refuses, and a fix, or asking for it, brings it back', { timeout: 60_000 }, async () => {
    const here = place(with_(at(`ctx.on('agent/tool-start', () => { spin() })`, LOOP)))
    await here.hx(['start', '--trust'])
    const session = (await here.hx(['agent', '--detach', '--offline', 'Read README.md'])).stdout.trim()
    await until(async () => (await here.hx(['status'])).code === 1)
    const refused = await here.hx(['agent', '--offline', 'Read README.md'])
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringMatching(/started again[^]*quarantined[^]*guard_inactive: required plugin "rude" is not active \(it is quarantined\)/)])
    expect(refused.stderr.match(/^hx: quarantined: .*$/gm)).toEqual(['hx: quarantined: rude; see "hx plugins"'])
    expect((await here.hx(['status'])).stdout).toContain('quarantined: rude')
    expect((await here.hx(['plugins'])).stdout).toMatch(/rude is quarantined: it held .*rude\.ts:9/)
    await here.hx(['restart', '--now'])
    expect((await here.hx(['status'])).stdout).toContain('quarantined: rude')
    expect((await here.hx(['plugins', 'reload', 'rude'])).stdout).toBe('loaded: rude\n')

    expect((await here.hx(['status'])).stdout).not.toContain('quarantined')
    await here.hx(['agent', '--offline', 'Read README.md'])
    here.write('plugins/rude.ts', at('', LOOP))
    const answered = await until(async () => { const one = await here.hx(['agent', '--offline', '--session', session, 'Read README.md']); return one.code === 0 && one })
    expect(answered.stdout).toContain('"Demo"')
    expect((await here.hx(['sessions', 'show', session])).stdout).toContain('interrupted')
    await here.hx(['stop'])
  })
})

describe('a process that stands still for another reason', () => {
  it.runIf(process.platform === 'linux')('is let alone while its thread stands in line for a processor', { timeout: 60_000 }, async () => {
    const busy = at(`ctx.setInterval(() => { spin() }, 30)`, 'for (let n = 0; n < 4e7; n++) Math.sqrt(n)')
    const { here, daemon } = await up(busy)
    const pid = daemon.child.pid!, inLineMs = () => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
    const before = inLineMs()
    setPriority(pid, 19)
    const others = [spawn('taskset', ['-p', '-c', '0', String(pid)]), ...[1, 2, 3, 4].map(() => spawn('taskset', ['-c', '0', 'sh', '-c', 'while :; do :; done']))]
    try { await until(() => inLineMs() - before > 6000 || daemon.child.exitCode !== null || daemon.child.signalCode !== null) } finally { for (const other of others) other.kill('SIGKILL') }
    expect((await here.hx(['agent', '--offline', 'Read README.md'])).stdout).toContain('"Demo"')
    expect((await here.hx(['plugins'])).stdout).not.toContain('quarantined')
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
  })
  it('is let alone: it was stopped and goes on, or somebody debugs it', { timeout: 60_000 }, async () => {
    const slow = at(`ctx.on('agent/turn-start', () => { spin() })`, 'const end = performance.now() + 4000; while (performance.now() < end);')
    await Promise.all([
      (async () => {
        const { here, daemon } = await up(at('', LOOP))
        daemon.child.kill('SIGSTOP')
        await new Promise(done => { setTimeout(done, 4000) })
        daemon.child.kill('SIGCONT')
        expect((await here.hx(['agent', '--offline', 'Read README.md'])).stdout).toContain('"Demo"')
        daemon.child.kill('SIGTERM')
        expect((await daemon.ended).code).toBe(0)
      })(),
      (async () => {
        const here = place(with_(slow))
        const daemon = here.start(['start', '--foreground', '--trust'], { env: { NODE_OPTIONS: '--inspect=127.0.0.1:0' } })
        await until(() => daemon.output().stderr.includes('listens on'))
        expect((await here.hx(['agent', '--offline', 'Read README.md'])).stdout).toContain('"Demo"')
        daemon.child.kill('SIGTERM')
        expect((await daemon.ended).code).toBe(0)
      })(),
    ])
  })
})
