import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as permission from '../../plugins/permission/index.js'
import { textOf } from '../../plugins/sandbox/files.js'
import * as sandbox from '../../plugins/sandbox/index.js'
import * as toolBash from '../../plugins/tool-bash/index.js'
import { folder } from '../support/folder.js'
import { pluginHost } from '../support/plugin-host.js'
import { until } from '../support/hx.js'
import { hasSandbox } from '../support/sandbox.js'

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const hosted = (config: object = {}, options: Parameters<typeof pluginHost>[1] = {}) => pluginHost([{ module: sandbox, config }, { module: toolBash }], options)
const other = { module: { name: 'other', apply: (ctx: import('../../core/api.js').Context) => { ctx.tools.register({ name: 'other', description: 'Starts nothing.', unconfined: true, parameters: { type: 'object' }, execute: (_: never, run: import('../../core/api.js').ToolRun) => run.launch(['a', 'b']).join(' ') }) } } }

describe('sandbox, where there is none', () => {
  const NONE = { program: 'no-such-bwrap' }
  it('runs commands bare, and says so once', async () => {
    const host = await hosted(NONE)
    expect((await host.call('bash', { command: 'echo one' })).read).toContain('one')
    expect((await host.call('bash', { command: 'echo two' })).read).toContain('two')
    expect(host.lines.filter(line => line.message.startsWith('commands run without a sandbox')).map(({ level, message, plugin }) => [level, message, plugin])).toEqual([['warn', 'commands run without a sandbox: bubblewrap ("no-such-bwrap") is not installed. Rules alone keep nobody out who means harm; install bubblewrap, or say enabled: false to hear no more of it', 'sandbox']])
  })
  it('says why when bubblewrap is there and does not work', async () => {
    const files = folder({ bwrap: '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n' })
    execFileSync('chmod', ['755', files.at('bwrap')])
    const host = await hosted({ program: files.at('bwrap') })
    expect((await host.call('bash', { command: 'echo one' })).read).toContain('one')
    const why = process.platform === 'linux' ? 'bubblewrap does not work here: bwrap: setting up uid map: Permission denied' : 'bubblewrap runs on Linux only'
    expect(host.lines.some(line => line.message.includes(why))).toBe(true)
  })
  it('runs nothing when it is required', async () => {
    const host = await hosted({ ...NONE, required: true })
    expect((await host.call('bash', { command: 'echo done > file' })).read).toMatch(/^the sandbox is required here and can not be used \(.*\), so the command was not run; tell the user$/)
    expect(existsSync(host.folder.at('file'))).toBe(false)
  })
  it('says nothing when no command runs', async () => {
    const host = await pluginHost([{ module: sandbox, config: NONE }, other])
    expect([(await host.call('other', {})).read, host.lines.filter(({ level }) => level === 'warn')]).toEqual(['a b', []])
  })
})

describe.runIf(hasSandbox)('sandbox', () => {
  it('lets a command work in the workspace as ever', async () => {
    const host = await hosted({}, { files: { 'a.txt': 'x\n' } })
    const { read } = await host.call('bash', { command: 'cat a.txt; mkdir -p deep/er; echo y > deep/er/b.txt; pwd; echo err >&2; exit 3' })
    expect(read).toBe(`x\n${host.folder.path}\n[stderr]\nerr\n[exit code 3]`)
    expect(readFileSync(host.folder.at('deep/er/b.txt'), 'utf8')).toBe('y\n')
  })
  it('shows the system and what is needed to work: node, git, a temporary folder, a home', async () => {
    const host = await hosted()
    const { read } = await host.call('bash', { command: 'node -p 1+1 && git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --format=%s && mktemp >/dev/null && touch ~/x && ls -A ~ | grep -c x && bash --version >/dev/null && echo fine' })
    expect(read).toMatch(/^2\nx\n1\nfine\n/)
    expect(existsSync(join(homedir(), 'x'))).toBe(false)
  })

  it('lets nothing out: table of ways', async () => {
    const outside = folder({ 'secret.txt': 'canary-7\n', 'run/token': 'canary-8\n' })
    const home = homedir()
    const host = await hosted()
    const root = dirname(host.folder.path), at = (name: string) => join(root, name)                              // the config in force, a plugins folder to be, hx's own places: all of it the workspace
    execFileSync('git', ['init', '-q', root])
    const server = createServer((_, response) => { reached++; response.end('reached') })
    let reached = 0
    await new Promise<void>(done => { server.listen(0, '127.0.0.1', done) })
    onTestFinished(() => { server.close() })
    const socket = outside.at('host.sock'), local = createServer((_, response) => { reached++; response.end('reached') })
    await new Promise<void>(done => { local.listen(socket, done) })
    onTestFinished(() => { local.close() })
    symlinkSync(outside.path, at('link'))
    const before = { config: readFileSync(at('harness.config.yaml'), 'utf8'), git: readFileSync(at('.git/config'), 'utf8') }
    const port = (server.address() as { port: number }).port
    const tries = [
      `cat ${outside.at('secret.txt')}`, `cat link/secret.txt`, `echo x > ${outside.at('made.txt')}`, `echo x > link/made.txt`, `cp -r ${outside.path} stolen`, `mkdir -p ${outside.path}; echo x > ${outside.at('made.txt')}; ls -A ${outside.path} | grep secret`,
      `python3 -c "print(open('${outside.at('secret.txt')}').read())"`, `node -e "console.log(require('fs').readFileSync('${outside.at('secret.txt')}','utf8'))"`, `ln ${outside.at('secret.txt')} hard`, `cat /proc/*/root${outside.at('secret.txt')}`, `cat /proc/1/root${outside.at('secret.txt')}`, `cat /proc/${process.pid}/environ`, `cat /proc/$PPID/environ | tr '\\0' '\\n' | grep CANARY`, `grep -a CANARY /proc/*/environ`, 'env | grep CANARY',
      `curl -sS -m 2 http://127.0.0.1:${port}`, `node -e "fetch('http://127.0.0.1:${port}').then(r=>r.text()).then(console.log)"`, `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}'`, `node -e "require('http').get({socketPath:'${socket}'},r=>r.pipe(process.stdout))"`, 'curl -sS -m 2 http://1.1.1.1',
      `ls ${home}/.ssh ${home}/.hx ${home}/.local/state/hx`, `echo 'export HX_EVIL=1' >> ${home}/.bashrc; false`, 'echo x > /etc/hx-test', 'touch /usr/bin/hx-test', 'cat /etc/shadow', `kill -9 ${process.pid}`, `kill -0 ${process.pid}`, 'kill -9 1; kill -0 1 && false',  'mount -o remount,rw /usr', 'mount -t tmpfs none /mnt', `unshare -Urm sh -c 'mount -o remount,rw /etc && echo x > /etc/hx-test'`, 'umount -l /etc', 'mknod disk b 8 0 && cat disk', 'echo 1 > /proc/sys/kernel/sysrq', 'echo c > /proc/sysrq-trigger', 'dmesg',
      'echo "plugins: [evil]" > harness.config.yaml', 'rm -f harness.config.yaml; test ! -e harness.config.yaml', 'mv harness.config.yaml x', 'sed -i s/x/y/ harness.config.yaml', 'mkdir -p plugins && echo x > plugins/evil.ts', 'rm -rf plugins', 'mv plugins other', 'mv hx other', 'mv hx/config x', 'rm -rf hx/config', 'mkdir -p hx/config; echo x > hx/config/trust.json', 'ls hx/run/*', 'echo x > hx/run/token', 'echo x > hx/state/x',
      "echo '#!/bin/sh' > .git/hooks/pre-commit", 'git config core.pager evil', 'git config alias.x "!evil"', 'mv .git old && git init -q .', 'rm -rf .git', 'mv .git/hooks .git/h && mkdir .git/hooks && touch .git/hooks/pre-commit',
    ]
    process.env['HX_CANARY'] = 'CANARY'
    onTestFinished(() => { delete process.env['HX_CANARY'] })
    const got: string[] = []
    for (let i = 0; i < tries.length; i += 12) {
      const some = tries.slice(i, i + 12), marked = some.map((_, n) => `==${i + n}==`)
      const { read } = await host.call('bash', { command: some.map((command, n) => `echo ${marked[n]}; (timeout 20 sh -c ${quoted(command)}) 2>/dev/null && echo worked`).join('\n') }, { cwd: root })
      for (const [n, command] of some.entries()) {
        const said = read.slice(read.indexOf(marked[n]!), read.indexOf(marked[n + 1] ?? '[exit code'))
        if (/canary-|=CANARY/.test(said) || /worked$/m.test(said)) got.push(`${command}\n  ${said}`)
      }
    }
    expect(got).toEqual([])
    expect([reached, existsSync(outside.at('made.txt')), existsSync('/etc/hx-test'), existsSync('/usr/bin/hx-test'), existsSync(at('plugins/evil.ts')), existsSync(at('hx/config/trust.json')), existsSync(at('.git/hooks/pre-commit'))]).toEqual([0, false, false, false, false, false, false])
    expect({ config: readFileSync(at('harness.config.yaml'), 'utf8'), git: readFileSync(at('.git/config'), 'utf8') }).toEqual(before)
    await host.unload('sandbox')
    expect(existsSync(at('plugins'))).toBe(false)
  }, 60_000)
  it('tells the model why there is no network, and opens it when the config says so', async () => {
    const host = await hosted()
    expect((await host.call('bash', { command: 'node -e "fetch(\'http://example.test\').catch(e=>{console.error(e.cause.code);process.exit(1)})"' })).read).toContain('[sandbox: commands have no network here; only the user can change that (network: true in the config of plugin "sandbox"), so ask]')
    expect((await host.call('bash', { command: 'touch /usr/x' })).read).toContain('[sandbox: commands write in the workspace only')
    await host.call('bash', { command: 'git init -q' })
    expect((await host.call('bash', { command: 'git config user.name x' })).read).toMatch(/could not write config[^]*\[sandbox: .* what steers git/)
    const server = createServer((_, response) => { response.end('reached') })
    await new Promise<void>(done => { server.listen(0, '127.0.0.1', done) })
    onTestFinished(() => { server.close() })
    const open = await hosted({ network: true })
    expect((await open.call('bash', { command: `node -e "fetch('http://127.0.0.1:${(server.address() as { port: number }).port}').then(r=>r.text()).then(console.log)"` })).read).toContain('reached')
  })
  it('ends what a command leaves in the background, and keeps what was started in the background until it is stopped', async () => {
    const host = await hosted()
    const { read } = await host.call('bash', { command: 'setsid sleep 4242 & (sleep 4242 &) ; echo done' })
    expect(read).toBe('done\n[exit code 0]')
    await until(() => spawnSync('pgrep', ['-f', '^sleep 4242$']).status === 1)
    const { result, read: started } = await host.call('bash', { command: 'touch up; sleep 4243', background: true })
    await until(() => existsSync(host.folder.at('up')))
    expect((await host.call('stop_command', { pid: Number(/pid (\d+)/.exec(started)![1]) }, { session: result.session })).read).toBe('stopped')
    await until(() => spawnSync('pgrep', ['-f', '^sleep 4243$']).status === 1)
  })
  it('opens what a person allowed, for that call', async () => {
    const outside = folder({ 'notes.txt': 'from outside\n' })
    const host = await pluginHost([{ module: permission }, { module: sandbox }, { module: toolBash }])
    const yes = { approver: async () => ({ answer: 'once' as const }) }
    expect((await host.call('bash', { command: `cat ${outside.at('notes.txt')}` }, yes)).read).toContain('from outside')
    expect((await host.call('bash', { command: `cp ${outside.at('notes.txt')} ${outside.at('copy.txt')}` }, yes)).read).toContain('exit code 0')
    expect(readFileSync(outside.at('copy.txt'), 'utf8')).toBe('from outside\n')
    expect((await host.call('bash', { command: `p=${outside.path}; cat $p/notes.txt` })).read).not.toContain('from outside')
  })
  it('shows further files that the config names', async () => {
    const outside = folder({ 'tool/x': 'here\n' })
    const host = await hosted({ read: [outside.at('tool')] })
    expect((await host.call('bash', { command: `cat ${outside.at('tool/x')}; touch ${outside.at('tool/y')}` })).read).toMatch(/^here\n[^]*\[exit code 1\]/)
  })
  it('lets git commit in a worktree that its repository knows, and opens no folder that a forged one names', async () => {
    const main = folder({ 'a.txt': 'x' }), git = (cwd: string, ...args: string[]) => execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd, encoding: 'utf8' })
    git(main.path, 'init', '-q'); git(main.path, 'add', '.'); git(main.path, 'commit', '-qm', 'one')
    const host = await hosted()
    git(main.path, 'worktree', 'add', '-q', '-f', host.folder.path, '-b', 'side')
    expect((await host.call('bash', { command: 'echo y > b.txt; git add b.txt && git -c user.name=a -c user.email=a@b commit -qm two && git log --format=%s; touch "$(git rev-parse --git-common-dir)/hooks/evil"' })).read).toMatch(/^two\none\n/)
    expect([git(main.path, 'log', '--format=%s', 'side'), existsSync(main.at('.git/hooks/evil'))]).toEqual(['two\none\n', false])
    const forged = await hosted({}, { files: { '.git': `gitdir: ${main.at('.git')}\n` } })
    expect((await forged.call('bash', { command: `touch ${main.at('.git/evil')}` })).read).toContain('exit code 1')
  })
  it('shows the repository around a workspace and writes nothing in it', async () => {
    const outer = folder({ 'top.txt': 'top\n', 'pkg/a/x.txt': 'x' })
    execFileSync('git', ['init', '-q', outer.path])
    const host = await hosted()
    const { read } = await host.call('bash', { command: 'git status --short; cat ../../top.txt; touch ../../made' }, { cwd: outer.at('pkg/a') })
    expect(read).toContain('top\n')
    expect([read.includes('?? '), existsSync(outer.at('made'))]).toEqual([true, false])
  })
  it('hides secrets and holds start files when the home folder is the workspace', async () => {
    const home = folder({ '.ssh/id_rsa': 'canary-9\n', '.netrc': 'canary-9\n', '.bashrc': '# mine\n', 'work.txt': 'w\n' })
    const before = process.env['HOME']
    process.env['HOME'] = home.path
    onTestFinished(() => { process.env['HOME'] = before })
    const host = await hosted()
    const { read } = await host.call('bash', { command: 'cat work.txt; cat .ssh/id_rsa .netrc; ls -A .ssh; echo evil >> .bashrc; touch new.txt' }, { cwd: home.path })
    expect([read.startsWith('w\n'), read.includes('canary'), readFileSync(home.at('.bashrc'), 'utf8'), existsSync(home.at('new.txt'))]).toEqual([true, false, '# mine\n', true])
  })
  it('refuses to hold commands to the whole system', async () => {
    const host = await hosted()
    expect((await host.call('bash', { command: 'echo x' }, { cwd: '/' })).read).toBe('the sandbox can not hold commands to "/"; work in a folder of your own, or switch plugin "sandbox" off')
  })
  it('takes a changed config while a command runs, without a gap', async () => {
    const host = await hosted()
    const running = host.call('bash', { command: 'sleep 0.3; touch /etc/hx-test; echo $?' })
    await host.reload('sandbox', { module: sandbox, config: { network: true } })
    expect((await running).read).toContain('1\n')
    expect(existsSync('/etc/hx-test')).toBe(false)
  })
})

it('reads plain files alone: a pipe or a device in the place of a file of git would hold the host', () => {
  const at = folder({ 'commondir': '../x\n' })
  execFileSync('mkfifo', [at.at('pipe')])
  symlinkSync('/dev/zero', at.at('zero'))
  expect(['commondir', 'pipe', 'zero', 'gone', '.'].map(name => textOf(at.at(name)))).toEqual(['../x\n', undefined, undefined, undefined, undefined])
})
