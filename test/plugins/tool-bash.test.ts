/** The tool `bash` with real shells and processes. */
import { EventEmitter } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ToolRun } from 'harnessx'
import { stopTool } from '../../plugins/tool-bash/stop.js'
import { bashTool, type BashConfig } from '../../plugins/tool-bash/bash.js'
import { commandEnvironment } from '../../plugins/tool-bash/environment.js'
import { Config } from '../../plugins/tool-bash/index.js'
import { Jobs } from '../../plugins/tool-bash/jobs.js'

const onLinux = process.platform === 'linux'
let dir: string, jobs: Jobs
beforeEach(async () => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'hx-test-')))
  jobs = new Jobs()
})
afterEach(async () => {
  await jobs.stopAll()
  rmSync(dir, { recursive: true, force: true })
})

interface Given { config?: Partial<BashConfig>; signal?: AbortSignal; session?: string; cwd?: string; progress?: (line: string) => void; shell?: string }
async function bash(args: { command: string; timeout?: number; background?: boolean }, given: Given = {}): Promise<{ content: string; isError: boolean }> {
  const run: ToolRun = {
    session: { id: given.session ?? 's1', cwd: given.cwd ?? dir, depth: 0, messages: [] },
    turn: 1, step: 0, callId: 'call_1', signal: given.signal ?? new AbortController().signal,
    get outputDir() { mkdirSync(join(dir, 'out'), { recursive: true }); return join(dir, 'out') },
    launch: argv => argv, lingers: () => {}, progress: given.progress ?? (() => {}),
  }
  const tool = bashTool(jobs, given.shell ?? '/bin/bash', { ...Config.parse({}), ...given.config })
  const result = await tool.execute(args as never, run)
  return typeof result === 'string' ? { content: result, isError: false } : { content: result.content, isError: result.isError ?? false }
}

const alive = (pid: number): boolean => {
  try {
    return onLinux ? !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1')) : process.kill(pid, 0)
  } catch { return false }                                              // there is no such process
}
async function until(condition: () => boolean, ms = 10_000): Promise<void> {
  for (const end = performance.now() + ms; !condition();) {
    if (performance.now() > end) throw new Error(`not so within ${ms} ms: ${condition.toString()}`)
    await delay(10)
  }
}
const pidIn = (file: string): number => Number(readFileSync(join(dir, file), 'utf8'))
const fileNamed = (content: string): string => /"([^"]+\.txt)"/.exec(content)![1]!

describe('what the model reads', () => {
  it('gives the output and the exit code', async () => {
    expect(await bash({ command: 'echo hello; echo there' })).toEqual({ content: 'hello\nthere\n[exit code 0]', isError: false })
  })
  it.each([['true', '(no output)\n[exit code 0]', false], ['false', '(no output)\n[exit code 1]', true], ['exit 3', '(no output)\n[exit code 3]', true]])('says that %s prints nothing, and how it ended', async (command, content, isError) => {
    expect(await bash({ command })).toEqual({ content, isError })
  })
  it('names the signal that ended the shell', async () => {
    expect(await bash({ command: 'kill -SEGV $$' })).toEqual({ content: '(no output)\n[killed by SIGSEGV]', isError: true })
  })
  it('marks where stderr begins and ends, in order of arrival', async () => {
    const { content } = await bash({ command: 'echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three' })
    expect(content).toBe('one\n[stderr]\ntwo\n[stdout]\nthree\n[exit code 0]')
  })
  it('never mixes two streams within a line', async () => {
    const { content } = await bash({ command: 'printf par; sleep 0.1; echo err >&2; sleep 0.1; echo tial' })
    expect(content).toBe('[stderr]\nerr\n[stdout]\npartial\n[exit code 0]')
  })
  it('takes escape sequences, overprinted lines and control characters out', async () => {
    const { content } = await bash({ command: String.raw`printf '\033[31mred\033[0m \033]0;title\007ok\n10%%\r50%%\r100%%\r\nbell\007\n'` })
    expect(content).toBe('red ok\n100%\nbell\n[exit code 0]')
  })
  it('keeps characters whole that arrive in pieces, and replaces invalid bytes', async () => {
    const { content } = await bash({ command: String.raw`printf '\xe2\x82'; sleep 0.1; printf '\xac \xf0\x9f'; sleep 0.1; printf '\x98\x80 \xff\n'` })
    expect(content).toBe('€ 😀 \ufffd\n[exit code 0]')
  })
  it('shows both ends of a long output and keeps all of it in a file', async () => {
    const { content } = await bash({ command: 'seq 1 100000' }, { config: { maxCharacters: 2000 } })
    expect(content.length).toBeLessThan(2500)
    expect(content).toMatch(/^1\n2\n3\n/)
    expect(content).toMatch(/99999\n100000\n\[exit code 0\]$/)
    expect(content).toContain('characters left out')
    expect(readFileSync(fileNamed(content), 'utf8')).toBe(`${Array.from({ length: 100_000 }, (_, i) => i + 1).join('\n')}\n`)
  })
  it('keeps a file whenever something is left out, also when only the marks of streams make it too long', async () => {
    const { content } = await bash({ command: 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do printf "%060d\\n" $i; sleep 0.03; echo e >&2; sleep 0.03; done' }, { config: { maxCharacters: 1000 } })
    expect(content).toContain('characters left out')
    expect(readFileSync(fileNamed(content), 'utf8').split('\n')).toHaveLength(27)
  })
  it('makes no file for a short output', async () => {
    await bash({ command: 'echo short' })
    expect(existsSync(join(dir, 'out'))).toBe(false)
  })
  it('goes on when the file can not be written, and says so', async () => {
    const run = { session: { id: 's1', cwd: dir, depth: 0, messages: [] }, turn: 1, step: 0, callId: 'c', signal: new AbortController().signal, outputDir: join(dir, 'missing'), launch: (argv: readonly string[]) => argv, lingers: () => {}, progress: () => {} }
    const result = await bashTool(jobs, '/bin/bash', { ...Config.parse({}), maxCharacters: 1000 }).execute({ command: 'seq 1 10000; echo last' } as never, run)
    expect(result).toMatchObject({ isError: false })
    expect((result as { content: string }).content).toMatch(/could not be kept in a file: ENOENT[^]*last\n\[exit code 0\]$/)
  })
  it('tells clients the last line while it runs', async () => {
    const lines: string[] = []
    await bash({ command: 'echo first; sleep 1.3; echo second; sleep 1.3' }, { progress: line => lines.push(line) })
    expect(lines).toEqual(['first', 'second'])
  })
})

describe('how a command is run', () => {
  it('starts in the folder of the session, each time anew', async () => {
    mkdirSync(join(dir, 'sub'))
    expect((await bash({ command: 'cd sub; X=1; pwd' })).content).toContain(join(dir, 'sub'))
    expect((await bash({ command: 'pwd; echo "X=$X"' })).content).toBe(`${dir}\nX=\n[exit code 0]`)
  })
  it('has no input to wait for and no terminal', async () => {
    expect((await bash({ command: 'cat; read -r line || echo nothing; test -t 1 || echo no terminal; (: < /dev/tty) 2> /dev/null || echo no tty' })).content).toBe('nothing\nno terminal\nno tty\n[exit code 0]')
  })
  it('lets programs open /dev/stdout and /dev/stderr', async () => {
    expect((await bash({ command: 'echo a > /dev/stdout; echo b | tee /dev/stderr > /dev/null' })).content).toBe('a\n[stderr]\nb\n[exit code 0]')
  })
  it('passes on an allow-list of variables, and no key of a model', () => {
    const host = { PATH: '/bin', HOME: '/h', LC_ALL: 'C', LANG: 'C', SECRET_TOKEN: 'canary', OPENAI_API_KEY: 'canary', NODE_OPTIONS: 'x', EXTRA: '1' }
    expect(commandEnvironment(host, [])).toEqual({ PATH: '/bin', HOME: '/h', LC_ALL: 'C', LANG: 'C' })
    expect(commandEnvironment(host, ['EXTRA', 'OPENAI_API_KEY', 'ABSENT'])).toEqual({ PATH: '/bin', HOME: '/h', LC_ALL: 'C', LANG: 'C', EXTRA: '1' })
    expect(Config.safeParse({ env: ['DEEPSEEK_API_KEY'] }).success).toBe(false)
  })
  it('shows a command nothing of the rest of the host\'s environment', async () => {
    process.env['HX_CANARY_KEY'] = 'canary-4711'
    try {
      const { content } = await bash({ command: 'env; cat /proc/self/environ 2>/dev/null' })
      expect(content).toContain('PATH=')
      expect(content).not.toContain('canary-4711')
    } finally { delete process.env['HX_CANARY_KEY'] }
  })
  it('does not deadlock on a megabyte on each stream', async () => {
    const { content, isError } = await bash({ command: 'head -c 1000000 /dev/zero | tr "\\0" e >&2; head -c 1000000 /dev/zero | tr "\\0" o' })
    expect(isError).toBe(false)
    expect(statSync(fileNamed(content)).size).toBe(2_000_000)
  })
  it('words a missing folder, a NUL and a command that is too long', async () => {
    await expect(bash({ command: 'true' }, { cwd: join(dir, 'gone') })).rejects.toThrow(`the working directory "${join(dir, 'gone')}" does not exist any more`)
    await expect(bash({ command: 'echo \0' })).rejects.toThrow('NUL character')
    await expect(bash({ command: `: ${'x'.repeat(5_000_000)}` })).rejects.toThrow('the command is too long')
    await expect(bash({ command: 'true' }, { shell: '/nowhere/bash' })).rejects.toThrow('the shell could not be started')
  })
  it('leaves no listener and no handle behind', async () => {
    const signal = new AbortController().signal
    await bash({ command: 'echo warm up' }, { signal })
    const before = process.getActiveResourcesInfo().sort()
    for (let i = 0; i < 20; i++) await bash({ command: 'echo a; echo b >&2' }, { signal })
    await until(() => process.getActiveResourcesInfo().length <= before.length)
    expect(EventEmitter.getEventListeners(signal, 'abort')).toEqual([])
  })
})

describe('what goes on in the background', () => {
  it('returns as soon as the shell has exited, though a child holds its output', async () => {
    const began = performance.now()
    const { content, isError } = await bash({ command: 'sleep 300 & echo $! > pid; echo done' })
    expect(performance.now() - began).toBeLessThan(5000)
    expect(isError).toBe(false)
    expect(content).toMatch(/^done\n\[exit code 0\]/)
    if (onLinux) expect(content).toContain(`1 process that it started still runs in the background (pid ${pidIn('pid')})`)
    expect(alive(pidIn('pid'))).toBe(true)
  })
  it('returns though a child goes on printing, and does not break its pipe', async () => {
    const { content } = await bash({ command: '(while :; do echo x; echo y >> ticks; sleep 0.05; done) & echo $! > pid; echo done' })
    expect(content).toContain('done')
    const before = statSync(join(dir, 'ticks')).size
    await until(() => statSync(join(dir, 'ticks')).size > before + 20)
    expect(alive(pidIn('pid'))).toBe(true)
  })
  it('shows a last line that was not ended', async () => {
    expect((await bash({ command: 'printf "no end"; sleep 300 &' })).content).toMatch(/^no end\n\[exit code 0\]/)
  })
  it('stops everything when the plugin is unloaded', async () => {
    await bash({ command: 'sleep 300 & echo $! > pid' })
    await bash({ command: 'sleep 300', background: true })
    await jobs.stopAll()
    expect(alive(pidIn('pid'))).toBe(false)
  })
  it('stops what belongs to a session, and nothing else', async () => {
    await bash({ command: 'sleep 300 & echo $! > one' }, { session: 'one' })
    await bash({ command: 'sleep 300 & echo $! > two' }, { session: 'two' })
    await jobs.stopSession('one')
    expect(alive(pidIn('one'))).toBe(false)
    expect(alive(pidIn('two'))).toBe(true)
  })
  it.runIf(onLinux)('stops what left the group and closed its output, by the mark it carries', async () => {
    await bash({ command: 'setsid sleep 300 > /dev/null 2>&1 & sleep 0.2; pgrep -n -x sleep > pid || true' })
    const { find, MARK } = await import('../../plugins/tool-bash/processes.js')
    expect(MARK).toBe('HX_BASH')
    expect(await find({ mark: `${process.pid}-` })).not.toEqual([])
    await jobs.stopAll()
    expect(await find({ mark: `${process.pid}-` })).toEqual([])
  })
  it('starts a command in the background, with its output and its end in a file', async () => {
    const { content } = await bash({ command: 'echo up; sleep 1; echo bye; exit 4', background: true })
    expect(content).toMatch(/^\[started in the background: pid \d+\. .*stop_command with this pid\]$/)
    const file = fileNamed(content)
    await until(() => readFileSync(file, 'utf8').endsWith('[exit code 4]\n'))
    expect(readFileSync(file, 'utf8')).toBe('up\nbye\n\n[exit code 4]\n')
  })
  it('tells a background command that fails at once like any other', async () => {
    const { content, isError } = await bash({ command: 'no-such-command-here', background: true })
    expect(isError).toBe(true)
    expect(content).toMatch(/not found\n\[exit code 127\]$/)
  })
  it('stops a background command after the time it was given', async () => {
    const { content } = await bash({ command: 'echo $$ > pid; sleep 300', background: true, timeout: 0.5 })
    await until(() => readFileSync(fileNamed(content), 'utf8').includes('timed out after 0.5 s'))
    expect(alive(pidIn('pid'))).toBe(false)
  })
  it('is stopped by its pid, with what it started, and by no other session', async () => {
    const { content } = await bash({ command: 'sleep 300 & echo $! > pid; wait', background: true })
    await until(() => existsSync(join(dir, 'pid')) && pidIn('pid') > 0)
    const pid = Number(/pid (\d+)/.exec(content)![1])
    const stop = (session: string) => stopTool(jobs).execute({ pid } as never, { session: { id: session, cwd: dir, depth: 0, messages: [] } } as never)
    await expect(stop('s2')).rejects.toThrow(`no background command of this session has the pid ${pid}; none runs`)
    expect(await stop('s1')).toBe('stopped')
    await until(() => !alive(pidIn('pid')))
  })
  it('refuses more background commands than a session may have', async () => {
    await bash({ command: 'sleep 300', background: true }, { config: { maxBackground: 1 } })
    await expect(bash({ command: 'sleep 300', background: true }, { config: { maxBackground: 1 } })).rejects.toThrow(/^1 commands of this session run in the background already/)
    await expect(bash({ command: 'sleep 300', background: true }, { config: { maxBackground: 1 }, session: 'other' })).resolves.toMatchObject({ isError: false })
  })
  it('is not ended by the end of its turn', async () => {
    const turn = new AbortController()
    await bash({ command: 'echo $$ > pid; sleep 300', background: true }, { signal: turn.signal })
    turn.abort()
    await delay(100)
    expect(alive(pidIn('pid'))).toBe(true)
  })
})

describe('how a command is stopped', () => {
  it('stops a command that takes too long, and gives what it had printed', async () => {
    const { content, isError } = await bash({ command: 'echo begun; echo $$ > pid; sleep 300', timeout: 0.5 })
    expect(isError).toBe(true)
    expect(content).toBe('begun\n[timed out after 0.5 s and was stopped; give a longer timeout, or run it in the background]')
    expect(alive(pidIn('pid'))).toBe(false)
  })
  it('stops grandchildren too when the turn is aborted', async () => {
    const turn = new AbortController()
    const running = bash({ command: "sh -c 'sleep 300 & echo $! > pid; wait'" }, { signal: turn.signal })
    await until(() => existsSync(join(dir, 'pid')) && pidIn('pid') > 0)
    turn.abort()
    expect((await running).content).toContain('[stopped, because the turn was]')
    expect(alive(pidIn('pid'))).toBe(false)
  })
  it.runIf(onLinux)('stops what left the group when the turn is aborted', async () => {
    const turn = new AbortController()
    const running = bash({ command: "setsid sh -c 'echo $$ > pid; sleep 300' & wait" }, { signal: turn.signal })
    await until(() => existsSync(join(dir, 'pid')) && pidIn('pid') > 0)
    turn.abort()
    await running
    expect(alive(pidIn('pid'))).toBe(false)
  })
  it('kills what does not end on SIGTERM, and says so', async () => {
    const { content } = await bash({ command: "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", timeout: 0.3 })
    expect(content).toContain('it did not end on SIGTERM and was killed')
    expect(alive(pidIn('pid'))).toBe(false)
  })
  it('does not start when the turn is over already', async () => {
    await expect(bash({ command: 'touch started' }, { signal: AbortSignal.abort(new Error('over')) })).rejects.toThrow('over')
    expect(existsSync(join(dir, 'started'))).toBe(false)
  })
  it('stops a command that prints without end, and keeps the file within the limit', async () => {
    const before = process.memoryUsage().rss
    const { content, isError } = await bash({ command: 'yes' }, { config: { maxBytes: 20_000_000 } })
    expect(isError).toBe(true)
    expect(content).toContain('[stopped, because it printed too much]')
    expect(statSync(fileNamed(content)).size).toBeLessThan(21_000_000)
    expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000)
  })
})
