/** Shells that wait for their command in a sandbox of their own: what they may be used for, and when they end. */
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, existsSync, linkSync, mkdirSync, openSync, readFileSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as fc from 'fast-check'
import { createTestHost, type TestHostOptions } from 'harnessx/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as sandbox from '../../plugins/sandbox/index.js'
import { standing } from '../../plugins/sandbox/standing.js'
import { waitingShell, type Way } from '../../plugins/tool-bash/ahead.js'
import * as toolBash from '../../plugins/tool-bash/index.js'
import { Jobs } from '../../plugins/tool-bash/jobs.js'
import { Output } from '../../plugins/tool-bash/output.js'
import { folder } from '../support/folder.js'
import { CLI, place, until } from '../support/hx.js'
import { hasSandbox } from '../support/sandbox.js'
import { startScriptedModel } from '../support/scripted-model.js'

const isLinux = process.platform === 'linux'
const text = (file: string) => { try { return readFileSync(file, 'latin1') } catch { return '' } }
/** Shells of a host that have no command yet: the mark is its, the command line the waiting one's, and nothing stands before it any more. */
const waiting = (host = process.pid): readonly number[] => readdirSync('/proc').map(Number).filter(pid => pid > 0 && text(`/proc/${pid}/cmdline`).startsWith('/bin/bash\0-c\0IFS= read') && text(`/proc/${pid}/environ`).includes(`HX_BASH=${host}-`))
const one = () => until(() => waiting().length === 1)
const none = (host?: number) => until(() => waiting(host).length === 0)
/** True in a shell that was started ahead: process 1 there is bubblewrap, with the words it was given. */
const AHEAD = `grep -qa "IFS[=] read" /proc/1/cmdline && echo ahead || echo afresh`

type Step = string | (() => unknown) | { readonly command: string; readonly background?: boolean }
/** One turn: commands, and what happens between two of them; the waiting shell is there before what follows a command begins. What the model read of each. */
async function turn(steps: readonly Step[], options: Partial<TestHostOptions> = {}, config: object = {}, cwd?: string) {
  const host = await hosted(options, config), root = cwd ?? host.folder
  const { results } = await host.run('go', { cwd: (host.says(...repliesOf(steps)), root) })
  return { host, read: results.map(result => result.replace(/\n\[exit code 0\]$/, '')) }
}
async function hosted(options: Partial<TestHostOptions> = {}, config: object = {}) {
  const host = await createTestHost({ plugins: [{ module: sandbox, config }, { module: toolBash }], ...options })
  onTestFinished(() => host.close())
  return host
}
const repliesOf = (steps: readonly Step[]) => {
  const calls: (() => Promise<object>)[] = []
  let between: (() => unknown)[] = []
  for (const step of steps) {
    if (typeof step === 'function') { between.push(step); continue }
    const before = between, isFirst = calls.length === 0
    between = []
    calls.push(async () => {
      if (!isFirst) await one()
      for (const act of before) await act()
      return { calls: [{ name: 'bash', arguments: typeof step === 'string' ? { command: step } : step }] }
    })
  }
  return [...calls, async () => { for (const act of between) await act(); return 'done' }] as never[]
}

describe.runIf(hasSandbox)('a shell started ahead', () => {
  it('takes the second command of a turn and each later one, one each, and is gone with the turn', async () => {
    const { read } = await turn([AHEAD, `${AHEAD}; echo x > /tmp/x`, `${AHEAD}; test -e /tmp/x || echo empty`])
    const lines = read.map(result => result.split('\n'))
    expect(lines.map(([kind]) => kind)).toEqual(['afresh', 'ahead', 'ahead'])
    expect(lines[2]![1]).toBe('empty')
    await none()
  })
  it('looks to its command like one that was started for it', async () => {
    const look = 'exec 2>&1; echo "$0 $# $$ $PPID $SHLVL $- $_ $BASH_EXECUTION_STRING" | head -c 60; env | grep -v ^HX_BASH= | sort; ls -l /proc/self/fd | sed "s/.* \\([0-9]* ->\\)/\\1/; s/[0-9]\\{4,\\}//g; s/hx-bash-[^/]*//"; tr "\\0" " " < /proc/$$/cmdline; ulimit -a; umask; shopt; set -o; set | cut -d= -f1 | sort; grep -E "^(SigI|Shd|Cap|NoNew|Seccomp)" /proc/$$/status; trap; jobs; cat; pwd; echo >/dev/stderr; nonsense; exit 7'
    const { read: [afresh, ahead] } = await turn([look, look])
    expect(afresh).toMatch(/\[exit code 7\]$/)
    expect(ahead).toBe(afresh)
  })
  it('passes exit codes, signals, errors of syntax and what runs in the background', async () => {
    const { read } = await turn(['true', 'kill -9 $$', 'echo "', 'sleep 300 & echo started', { command: `${AHEAD}; sleep 300`, background: true }])
    expect(read.slice(1).map(result => result.replace(/pid \d+.*/s, 'pid'))).toEqual([expect.stringMatching(/\[exit code 137\]$/), expect.stringMatching(/^\[stderr\]\n\/bin\/bash: -c: line 1: unexpected EOF[^]*\[exit code 2\]$/), 'started', '[started in the background: pid'])
    expect(read[1]).not.toContain('IFS')
  })
  it('does not take a command that is too long for it', async () => {
    const { read } = await turn(['true', `${AHEAD} #${'x'.repeat(5000)}`])
    expect(read[1]).toBe('afresh')
  })
  it('is not started where a setting gives commands more of the environment, which a shell may obey before it has a command', async () => {
    const host = await createTestHost({ plugins: [{ module: sandbox }, { module: toolBash, config: { env: ['BASH_ENV'] } }], replies: [{ calls: [{ name: 'bash', arguments: { command: 'true' } }] }, async () => { await new Promise(resolve => { setTimeout(resolve, 50) }); return 'done' }] })
    onTestFinished(() => host.close())
    process.env['BASH_ENV'] = join(host.folder, 'evil')
    onTestFinished(() => { delete process.env['BASH_ENV'] })
    host.write('evil', 'touch ran')
    const seen: number[] = []
    await host.run('go')
    expect([...seen, ...waiting()]).toEqual([])
  })

  const replaced = (file: string) => { writeFileSync(`${file}.new`, readFileSync(file)); renameSync(`${file}.new`, file) }
  const CHANGES: readonly (readonly [string, (at: (name: string) => string) => unknown, string, string])[] = [
    ['a protected file was replaced by an editor', at => { replaced(at('harness.config.yaml')) }, 'echo evil >> harness.config.yaml', 'harness.config.yaml'],
    ['a name of a protected file was taken away and came back', at => { linkSync(at('harness.config.yaml'), at('kept')); rmSync(at('harness.config.yaml')); renameSync(at('kept'), at('harness.config.yaml')) }, 'echo evil >> harness.config.yaml', 'harness.config.yaml'],
    ['a module came, with hooks of its own', at => { mkdirSync(at('.git/modules/sub/hooks'), { recursive: true }); writeFileSync(at('.git/modules/sub/config'), '') }, 'echo evil >> .git/modules/sub/config', '.git/modules/sub/config'],
    ['the folder of hooks was made anew', at => { rmSync(at('.git/hooks'), { recursive: true }); mkdirSync(at('.git/hooks')); writeFileSync(at('.git/hooks/x'), '') }, 'echo evil >> .git/hooks/x', '.git/hooks/x'],
    ['the repository was put aside for another', at => { renameSync(at('.git'), at('old')); execFileSync('git', ['init', '-q', at('.')]) }, 'git config core.pager evil', '.git/config'],
    ['the folder of hooks was replaced by a link', at => { renameSync(at('.git/hooks'), at('elsewhere')); symlinkSync('../elsewhere', at('.git/hooks')) }, 'git config core.pager evil', '.git/config'],
  ]
  it('is not used where what is protected has changed on disk meanwhile, and the change is seen: table of ways', async () => {
    const host = await hosted(), root = dirname(host.folder), at = (name: string) => join(root, name)               // the folder that holds the config: there, a command meets all that is protected
    execFileSync('git', ['init', '-q', root])
    host.says(...repliesOf([AHEAD, ...CHANGES.flatMap(([, change, attack]) => [() => change(at), `${AHEAD}; ${attack} 2>/dev/null && echo worked`]), `${AHEAD}; true`]))
    const { results: [, ...read] } = await host.run('go', { cwd: root })
    expect(read.map((result, n) => [CHANGES[n]?.[0], result.split('\n')[0], result.includes('worked')])).toEqual([...CHANGES.map(([what]) => [what, 'afresh', false]), [undefined, 'ahead', false]])
    for (const [,, , kept] of CHANGES) expect(existsSync(at(kept)) && readFileSync(at(kept), 'utf8').includes('evil')).toBe(false)
  })
  it('is not used when a secret has come to the home folder that is the workspace', async () => {
    const home = folder({ 'work.txt': 'w' }), { HOME } = process.env
    process.env['HOME'] = home.path
    onTestFinished(() => { process.env['HOME'] = HOME })
    const { read } = await turn([AHEAD, AHEAD, () => { writeFileSync(home.at('.netrc'), 'canary-9\n') }, `${AHEAD}; cat .netrc`], {}, {}, home.path)
    expect(read).toEqual(['afresh', 'ahead', expect.stringMatching(/^afresh\n\[stderr\]\ncat: .netrc: Permission denied/)])
  })
  it('is not used when the workspace is another folder of that name', async () => {
    const work = folder({ 'a/old': '' })
    const { read } = await turn([AHEAD, () => { renameSync(work.at('a'), work.at('b')); mkdirSync(work.at('a')); writeFileSync(work.at('a/new'), '') }, `${AHEAD}; ls`], {}, {}, work.at('a'))
    expect(read[1]).toBe('afresh\nnew')
  })
  it('is not used under another config of the sandbox, nor without one', async () => {
    const host = await hosted()
    const reconfigure = (plugins: TestHostOptions['plugins']) => async () => { await host.configure(plugins) }
    host.says(...repliesOf(['true', reconfigure([{ name: 'sandbox', module: sandbox, config: { network: true } }, { module: toolBash }]), `${AHEAD}; readlink /proc/self/ns/net`]))
    const { results: [, read = ''] } = await host.run('go')
    expect(read).toMatch(/^afresh/)
    expect(read).toContain(readlinkSync('/proc/self/ns/net'))
  })
  it('can not be reached by an earlier command: no process of it is seen, signalled or traced, and no descriptor of it is held', async () => {
    const reach = 'n=0; for p in /proc/[0-9]*; do grep -qa "IFS[=] read" $p/cmdline 2>/dev/null && [ ${p#/proc/} != 1 ] && n=$((n+1)); done; echo "seen $n" > seen; kill -9 -1; for i in $(seq 5); do kill -9 $((1 + RANDOM)) 2>/dev/null; done'
    const { host, read } = await turn(['true', { command: `sleep 0.1; (trap "" TERM; while :; do ${reach}; sleep 0.01; done) & wait`, background: true }, 'true', `${AHEAD}; ls /proc/$$/fd | tr "\\n" " "`, AHEAD])
    expect(read.slice(3)).toEqual([expect.stringMatching(/^ahead\n0 1 2 /), 'ahead'])
    expect(text(join(host.folder, 'seen'))).toMatch(/^(seen 0\n)?$/)
  })
  it('holds nothing that the host was started with, and neither does one that is started afresh', async () => {
    const secret = folder({ 'secret.txt': 'canary-10\n' }), hx = place({ 'README.md': '# x\n' })
    const server = await startScriptedModel((_, index) => index < 2 ? { toolCalls: [{ name: 'bash', arguments: { command: 'for fd in /proc/self/fd/*; do case ${fd##*/} in 0|1|2) ;; *) cat $fd/secret.txt $fd; esac; done 2>/dev/null; echo looked' } }] } : 'done')
    onTestFinished(() => server.close())
    const held = [openSync(secret.path, 'r'), openSync(secret.at('secret.txt'), 'r')] as const
    onTestFinished(() => { held.forEach(closeSync) })
    const run = spawn(process.execPath, [CLI, 'agent', '--ephemeral', '--yes', 'go'], { cwd: hx.folder, env: { ...hx.env, OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'x' }, stdio: ['ignore', 'ignore', 'ignore', held[0], held[1], 'ignore', held[0], held[1]] })
    expect(await new Promise(resolve => { run.once('exit', resolve) })).toBe(0)
    expect(JSON.stringify(server.requests.at(-1)!.body)).toContain('looked')
    expect(JSON.stringify(server.requests.map(({ body }) => body))).not.toContain('canary-10')
  })
  it('ends with its plugin', async () => {
    const host = await hosted()
    host.says(...repliesOf(['true', one, async () => { await host.configure([{ module: sandbox }]); await none() }]))
    await host.run('go')
    expect(waiting()).toEqual([])
  })
  it('ends with a host that is killed, and keeps none alive', async () => {
    for (const end of ['killed', 'done'] as const) {
      const hx = place({ 'README.md': '# x\n' })
      let host = 0
      const server = await startScriptedModel(async (_, index) => {
        if (index === 0) return { toolCalls: [{ name: 'bash', arguments: { command: 'ls' } }] }
        await until(() => waiting(host).length === 1)
        if (end === 'killed') process.kill(host, 'SIGKILL')
        return 'done'
      })
      onTestFinished(() => server.close())
      const run = hx.start(['agent', '--ephemeral', '--yes', 'go'], { env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'x' } })
      host = run.child.pid!
      const { code, signal } = await run.ended
      expect([code, signal]).toEqual(end === 'killed' ? [null, 'SIGKILL'] : [0, null])
      await none(host)
    }
  })
})

describe.runIf(isLinux)('what a confinement rests on', () => {
  it('is what is mounted, which folder stands at each path, and which file with which names', () => {
    const { at } = folder({ 'folder/x': 'x', file: 'x' }), ask = () => standing(['bwrap', '--bind', at('folder'), at('folder'), at('file'), at('none')])
    const before = ask()
    expect(before.startsWith(readFileSync('/proc/self/mountinfo', 'utf8'))).toBe(true)
    writeFileSync(at('folder/y'), 'y')
    expect(ask()).toBe(before)
    writeFileSync(at('none'), '')
    const made = ask()
    rmSync(at('none'))
    linkSync(at('file'), at('second'))
    rmSync(at('second'))
    const linked = ask()
    rmSync(at('folder'), { recursive: true })
    mkdirSync(at('folder'))
    expect(new Set([before, made, linked, ask()]).size).toBe(4)
  })
})

describe.runIf(isLinux)('a waiting shell', () => {
  const way = (cwd: string, command: string, more: Partial<Way> = {}): Way => ({ command, argv: waitingShell('/bin/bash')!, cwd, env: { PATH: process.env['PATH'] ?? '' }, standing: () => 'same', ...more })
  async function ran(jobs: Jobs, cwd: string, command: string): Promise<string> {
    jobs.startAhead('s', way(cwd, ''))
    await one()
    const output = new Output({ folder: () => cwd, maxCharacters: 100_000, maxBytes: 1_000_000 })
    const job = await jobs.start('s', { argv: ['/bin/false'], cwd, env: {} }, output, way(cwd, command))
    await job.over
    return JSON.stringify(await output.ends())
  }
  const opened = () => { const jobs = new Jobs(); onTestFinished(() => jobs.stopAll()); return jobs }
  it('is given every command as it stands', async () => {
    const { path } = folder(), jobs = opened()
    await fc.assert(fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 60 }).map(word => word.replaceAll('\0', '')), async word => {
      expect(await ran(jobs, path, `printf %s '${word.replaceAll("'", `'\\''`)}' | od -An -v -tx1 | tr -d ' \\n'; echo .`)).toContain(`"${Buffer.from(word).toString('hex')}.`)
    }), { numRuns: 12 })
  })
})
