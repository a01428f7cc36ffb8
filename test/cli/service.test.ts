import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { unitText } from '../../core/cli/service.js'
import { CLI, place, until } from '../support/hx.js'

const plainUnit = { node: '/usr/bin/node', cli: '/opt/hx/cli.js', config: '/w/harness.config.yaml', trust: false, environmentFile: '/c/daemon.env', environment: {}, notify: false }

describe('the unit of a daemon', () => {
  it('runs it in the foreground, gives it time to stop, and starts it again when it crashed', () => {
    const text = unitText(plainUnit)
    expect(text).toContain('ExecStart="/usr/bin/node" "/opt/hx/cli.js" "--config" "/w/harness.config.yaml" "start" "--foreground"\n')
    expect(text).toContain('Type=exec\nExecStart')
    expect(text).toMatch(/Restart=on-failure\n[^]*TimeoutStopSec=15\n/)
    expect(unitText({ ...plainUnit, notify: true, trust: true, environment: { HX_HOME: '/h' } })).toMatch(/Type=notify\nNotifyAccess=all\nExecStart=.*"--trust" "start".*\nWorkingDirectory=\/w\nEnvironment="HX_HOME=\/h"\n/)
  })
  it('quotes what systemd would expand', () => {
    expect(unitText({ ...plainUnit, config: '/a b/100%/$x/"q".yaml' })).toContain('"/a b/100%%/$$x/\\"q\\".yaml"')
  })
})

describe('hx service install', () => {
  it('writes the unit once, for the owner alone, and says what to run', async () => {
    const { hx, env } = place({ 'harness.config.yaml': 'plugins: []\n' })
    expect((await hx(['service', 'install'])).code).toBe(3)
    const first = await hx(['service', 'install', '--trust', '--json'])
    if (process.platform !== 'linux') { expect(first.code).toBe(2); return }
    const { file, unit } = JSON.parse(first.stdout) as { file: string; unit: string }
    expect(file).toBe(join(env['HOME']!, '.config/systemd/user', unit))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toBe((await hx(['service', 'install', '--trust', '--print'])).stdout)
    const again = await hx(['service', 'install', '--trust'])
    expect(again.stdout).toContain('is there already')
    expect(again.stdout).toContain(`enable --now ${unit}`)
  })
  it('has a daemon that tells its manager when it is ready', async () => {
    const { write, start, env, folder } = place({ 'harness.config.yaml': 'plugins: []\n' })
    const notify = write('bin/systemd-notify', `#!/bin/sh\necho "$@" > ${folder}/told\n`)
    chmodSync(notify, 0o755)
    const running = start(['start', '--foreground', '--trust'], { env: { PATH: `${folder}/bin:${env['PATH']}`, NOTIFY_SOCKET: '/none' } })
    await until(() => existsSync(join(folder, 'told')) && readFileSync(join(folder, 'told'), 'utf8').includes('\n'))
    expect(readFileSync(join(folder, 'told'), 'utf8')).toBe(`--ready --pid=${running.child.pid}\n`)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(0)
  })
  it('explains itself', () => {
    expect(execFileSync(process.execPath, [CLI, 'service', 'install', '--help'], { encoding: 'utf8' })).toContain('systemd user unit')
  })
})
