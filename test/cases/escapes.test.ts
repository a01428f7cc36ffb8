import { describe, expect, it } from 'vitest'
import { place, until } from '../support/hx.js'

const plugin = (body: string) => `import type { Context } from 'harnessx'\nexport function apply(ctx: Context) {\n  ${body}\n}\n`
const config = (...rows: string[]) => `plugins: [${[...rows, 'tool-fs', 'model-offline'].join(', ')}]\n`
const guard = plugin(`ctx.on('agent/tool-start', () => { process.stderr.write('guard is there\\n') })`)

describe('in one run, a plugin that', () => {
  it.each([
    ['throws in a timer of its own', `setTimeout(() => { throw new Error('late boom') }, 1)`, /^hx: plugin "rude" threw outside of any call: late boom \(.*plugins\/rude\.ts:3:\d+\)$/m],
    ['lets a promise reject', `Promise.reject(new Error('unheard'))`, /^hx: plugin "rude" threw outside of any call: unheard \(.*plugins\/rude\.ts:3:\d+\)$/m],
    ['rejects with nothing', `Promise.reject()`, /^hx: plugin "rude" threw outside of any call: undefined was thrown$/m],
    ['throws what its handler has left running', `ctx.on('agent/turn-start', () => { setTimeout(() => { throw new Error('left') }, 1) })`, /threw outside of any call: left/],
    ['ends the process while it loads', `process.exit(0)`, /^hx: plugin "rude" could not be loaded: called process\.exit\(0\), which would end the host/m],
    ['ends the process in a handler', `ctx.on('agent/turn-start', () => { process.exit(7) })`, /called process\.exit\(7\)/],
    ['prints on stdout', `console.log('noise'); process.stdout.write('more noise\\n'); ctx.on('agent/turn-end', () => { console.log('last noise') })`, /^noise\nmore noise\n[^]*last noise$/m],
    ['changes the current folder', `process.chdir('/')`, /^hx: plugin "rude" could not be loaded: called process\.chdir\("\/"\), which would move the host/m],
    ['kills the process in a handler', `ctx.on('agent/turn-start', () => { process.kill(process.pid, 'SIGKILL') })`, /called process\.kill\(\d+\), which would end the host/],
    ['aborts the process in a timer', `setTimeout(() => process.abort(), 1)`, /threw outside of any call: plugin "rude" called process\.abort\(\)/],
    ['replaces what all share in a handler', `const { parse } = JSON; ctx.on('agent/turn-start', () => { JSON.parse = text => parse(text) })`, /^hx: plugin "rude": after its handler of "agent\/turn-start" JSON\.parse is not what it was: /m],
    ['takes the console away from all in a handler', `ctx.on('agent/turn-start', () => { Reflect.set(globalThis, 'console', undefined) })`, /^hx: plugin "rude": after its handler of "agent\/turn-start" console\.log, console\.error is not what it was: /m],
    ['ends stdout', `ctx.on('agent/turn-start', () => { process.stdout.end('bye') })`, /called process\.stdout\.end\(\), which would silence the host/],
    ['destroys stderr', `ctx.on('agent/turn-start', () => { process.stderr.destroy() })`, /called process\.stderr\.destroy\(\), which would silence the host/],
    ['adds to what all objects have', `ctx.on('agent/turn-start', () => { Object.assign(Object.prototype, { evil: 1 }) })`, /^hx: plugin "rude": after its handler of "agent\/turn-start" Object\.prototype or Array\.prototype is not what it was: /m],
    ['takes everybody\'s listeners off the process', `process.removeAllListeners()`, /called process\.removeAllListeners\(\), which would deafen the host/],
  ])('%s harms nobody: the task is done, and stdout holds the answer alone', async (_, body, says) => {
    const { hx } = place({ 'harness.config.yaml': config('rude', 'guard'), 'plugins/rude.ts': plugin(body), 'plugins/guard.ts': guard, 'README.md': '# Demo\n' })
    const { code, stdout, stderr } = await hx(['agent', '--offline', '--trust', 'Read README.md'])
    expect([code, stdout.split('\n').length, stdout]).toEqual([0, 2, expect.stringContaining('"Demo"')])
    expect(stderr).toMatch(says)
    expect(stderr).toContain('guard is there')
  })
})

/** Before there is a version of it that could be asked for its name. */
const loading = (top: string, validate = 'return { value }') => `${top}
export const Config = { '~standard': { version: 1, vendor: 'own', validate(value: unknown) { ${validate} } } }
export function apply() {}
`
describe('in one run, a plugin that, before its apply,', () => {
  it.each([
    ['ends the process in its top level', loading(`process.exit(0)`), /plugin "rude" could not be loaded: .*called process\.exit\(0\), which would end the host/],
    ['ends the process in its top level, after an await', loading(`await new Promise(done => setTimeout(done, 1)); process.exit(0)`), /plugin "rude" could not be loaded: .*called process\.exit\(0\), which would end the host/],
    ['ends the process while its config is checked', loading('', `process.exit(0)`), /called process\.exit\(0\), which would end the host/],
    ['changes the current folder in its top level', loading(`process.chdir('/')`), /called process\.chdir\("\/"\), which would move the host/],
    ['prints on stdout in its top level and while its config is checked', loading(`console.log('noise')`, `console.log('more noise'); return { value }`), /^noise\nmore noise$/m],
    ['throws in a timer of its top level', loading(`setTimeout(() => { throw new Error('late boom') }, 1)`), /^hx: plugin "rude" threw outside of any call: late boom/m],
    ['lets a promise of its top level reject', loading(`Promise.reject(new Error('unheard'))`), /^hx: plugin "rude" threw outside of any call: unheard/m],
  ])('%s harms nobody: the task is done, and stdout holds the answer alone', async (_, code, says) => {
    const { hx } = place({ 'harness.config.yaml': config('rude', 'guard'), 'plugins/rude.ts': code, 'plugins/guard.ts': guard, 'README.md': '# Demo\n' })
    const { code: exit, stdout, stderr } = await hx(['agent', '--offline', '--trust', 'Read README.md'])
    expect([exit, stdout.split('\n').length, stdout, stderr]).toEqual([0, 2, expect.stringContaining('"Demo"'), expect.stringMatching(says)])
    expect(stderr).toContain('guard is there')
  })
})

describe('in a daemon, a plugin that', () => {
  it('throws again and again outside of any call is stopped, also for the next daemon; the others and the daemon go on, and a fix brings it back', async () => {
    const here = place({ 'harness.config.yaml': config('rude', 'guard'), 'plugins/rude.ts': plugin(`const timer = setInterval(() => { throw new Error('tick') }, 20); ctx.effect(() => () => { clearInterval(timer) })`), 'plugins/guard.ts': guard, 'README.md': '# Demo\n' })
    let daemon = here.start(['start', '--foreground', '--trust'])
    const state = async (id: string) => (JSON.parse((await here.hx(['plugins', '--json', '--trust'])).stdout) as { plugins: { id: string; state: string; lastError?: string; reason?: string }[] }).plugins.find(one => one.id === id)!
    await until(() => daemon.output().stderr.includes('plugin "rude" is quarantined'))
    expect(await state('rude')).toMatchObject({ state: 'quarantined' })
    expect(await state('guard')).toMatchObject({ state: 'active' })
    expect((await here.hx(['agent', '--offline', '--trust', 'Read README.md'])).stdout).toContain('"Demo"')
    expect(daemon.output().stderr.match(/threw outside of any call: tick/g)!.length).toBeGreaterThanOrEqual(3)
    daemon.child.kill('SIGKILL')
    await daemon.ended
    daemon = here.start(['start', '--foreground', '--trust'])
    await until(() => daemon.output().stderr.includes('listens on'))
    expect([await state('rude'), daemon.output().stderr.includes('threw outside')]).toEqual([expect.objectContaining({ state: 'quarantined', reason: expect.stringContaining('it threw 3 times outside of any call') as unknown }), false])
    here.write('plugins/rude.ts', plugin(`ctx.logger.info('mended')`))
    await until(async () => (await state('rude')).state === 'active')
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
  })
})
