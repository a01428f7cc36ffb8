/** What other processes of the same user, a tool's among them, learn from a host: as little as the system lets it keep. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as permission from '../../plugins/permission/index.js'
import * as toolBash from '../../plugins/tool-bash/index.js'
import * as toolFs from '../../plugins/tool-fs/index.js'
import { place, until } from '../support/hx.js'
import { pluginHost } from '../support/plugin-host.js'
import { onScreen } from '../support/screen.js'
import { startScriptedModel, type Script } from '../support/scripted-model.js'
import { hasTerminal } from '../support/terminal.js'

const CANARY = 'hx-canary-3b8e61d0aa', isLinux = process.platform === 'linux'
async function withModel(script: Script) {
  const model = await startScriptedModel(script)
  onTestFinished(() => model.close())
  return { model, env: { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: CANARY, OPENAI_MODEL: 'm', MY_TOKEN: `é-${CANARY}`, PLAIN: 'stays' } }
}
const environmentOf = (pid: number) => readFileSync(`/proc/${pid}/environ`, 'utf8')

describe('a host', () => {
  it.runIf(isLinux)('shows no secret of its environment to other processes, uses it all the same, and opens no debugger to them', async () => {
    const { model, env } = await withModel([{ hang: 'headers' }])
    const here = place({ 'harness.config.yaml': 'plugins: [tells, model-openai]\n', 'plugins/tells.ts': `export const name = 'tells'\nexport function apply() { console.error('token ' + Buffer.from(process.env.MY_TOKEN).toString('base64')) }\n` })
    const run = here.start(['agent', '--trust', 'wait'], { env })
    await until(() => model.requests.length === 1)
    const shown = environmentOf(run.child.pid!)
    expect([shown.includes('canary'), /^MY_TOKEN=$/m.test(shown.replaceAll('\0', '\n')), shown.includes('PLAIN=stays')]).toEqual([false, true, true])
    expect(model.requests[0]!.headers.authorization).toBe(`Bearer ${CANARY}`)
    expect(run.output().stderr).toContain(`token ${Buffer.from(env.MY_TOKEN).toString('base64')}`)
    run.child.kill('SIGUSR1')
    run.child.kill('SIGINT')
    const { code, stderr } = await run.ended
    expect([code, stderr.includes('Debugger')]).toEqual([130, false])
  })
  it.runIf(isLinux)('shows none either as a daemon in the foreground, which a service manager gives its keys', async () => {
    const { model, env } = await withModel(['hello'])
    const here = place({ 'harness.config.yaml': 'plugins: [model-openai]\n' })
    const run = here.start(['start', '--foreground', '--trust'], { env })
    await until(async () => (await here.hx(['status'])).code === 0)
    expect(environmentOf(run.child.pid!)).not.toContain('canary')
    expect((await here.hx(['agent', 'hi'])).stdout).toBe('hello\n')
    expect(model.requests[0]!.headers.authorization).toBe(`Bearer ${CANARY}`)
  })
  it.runIf(hasTerminal)('hides a key that a plugin prints in the log of a chat', async () => {
    const { env } = await withModel(['hello'])
    const here = place({ 'harness.config.yaml': 'plugins: [prints, model-openai]\n', 'plugins/prints.ts': `export const name = 'prints'\nexport function apply(ctx) { ctx.on('agent/turn-start', () => console.error('the key is ' + process.env.OPENAI_API_KEY)) }\n` })
    const screen = onScreen(here, ['chat', '--trust'], env)
    await screen.sees('/help')
    screen.type('hi\r')
    await screen.sees('hello')
    await screen.sees(/1 step [^]*\/help$/)
    screen.type('\u0004')
    await screen.code
    expect(readFileSync(join(here.env['HX_HOME']!, 'state/logs/chat.log'), 'utf8')).toBe('the key is [hidden]\n')
  })
})

describe('environment and memory of processes', () => {
  const WAYS = ['cat /proc/$PPID/environ', 'cat /proc/*/environ', 'cat /proc/1/env*', 'strings /proc/self/task/1/environ', 'xxd < /proc/$$/mem', 'cp /proc/"$x"/mem out', 'gdb -p 1', 'gdb --pid=1 -batch', 'gdb ./a 1', "gdb -ex 'attach 1'", 'strace -f -p 1', 'gcore 1', 'py-spy dump --pid 1', 'python3 -c "print(open(\'/proc/%d/environ\'%1).read())"', 'dd if=/dev/mem', 'cd /proc/1; cat environ']
  const HARMLESS = ['strace -f mkdir -p x', 'gdb -batch -ex run -ex bt ./app', 'gdb --args ./app -p 3', 'py-spy record -o x.svg -- python app.py', 'perf record ./app', 'ps aux']
  it('are refused to commands and to file tools in every mode, whichever process is meant', async () => {
    const host = await pluginHost([{ module: permission }, { module: toolFs }, { module: toolBash }])
    const judged = async (command: string) => [command, (JSON.parse(String(await host.command('permission', `--mode yes --json ${command}`, ''))) as { kind: string }).kind] as const
    expect((await Promise.all(WAYS.map(judged))).filter(([, kind]) => kind !== 'deny')).toEqual([])
    expect((await Promise.all(HARMLESS.map(judged))).filter(([, kind]) => kind !== 'allow')).toEqual([])
    for (const path of ['/proc/self/environ', `/proc/${process.pid}/environ`, '/proc/self/task/1/environ', '/proc/999999999/environ', '/proc/self/mem', '/proc/self/../self/environ', '/dev/mem']) {
      expect([path, (await host.call('read_file', { path }, { mode: 'yes' })).read]).toEqual([path, expect.stringContaining('protected')])
    }
  })
})
