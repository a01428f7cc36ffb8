import { appendFileSync, closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'rolldown'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Log, type LogRecord } from '../../core/kernel/log.js'
import { read } from '../../core/loader/on-disk.js'
import { Watcher, type WatchProblem } from '../../core/loader/watcher.js'
import { folder } from '../support/folder.js'

/** A host that takes in every text it is told of, unless `refuse` throws. */
async function follow(files: readonly string[], options: { refuse?: (files: readonly string[]) => void; whole?: (file: string, text: string) => boolean; settleMs?: (file: string) => number } = {}) {
  const loaded = new Map(files.map(file => [file, read(file)]))
  const batches: (readonly string[])[] = [], problems: WatchProblem[] = [], lines: LogRecord[] = []
  const log = new Log()
  log.sink(record => { lines.push(record) })
  const watcher = new Watcher({
    files: () => loaded.keys(), text: file => loaded.get(file), log, report: problem => { problems.push(problem) },
    ...(options.whole && { whole: options.whole }), ...(options.settleMs && { settleMs: options.settleMs }),
    changed: async changed => {
      batches.push(changed)
      options.refuse?.(changed)
      for (const file of changed) loaded.set(file, read(file))
      await Promise.resolve()
    },
  })
  await watcher.start()
  onTestFinished(() => watcher.close())
  return { watcher, loaded, batches, problems, lines }
}

const saves: Record<string, (file: string, text: string) => Promise<void>> = {
  async 'in place'(file, text) { writeFileSync(file, text) },
  async 'by rename'(file, text) { writeFileSync(`${file}.tmp`, text); renameSync(`${file}.tmp`, file) },
  async 'as vim does'(file, text) { renameSync(file, `${file}~`); writeFileSync(file, text); rmSync(`${file}~`) },
  async 'in chunks'(file, text) {
    const out = openSync(file, 'w')
    for (let at = 0; at < text.length; at += Math.ceil(text.length / 3)) { writeSync(out, text.slice(at, at + Math.ceil(text.length / 3))); await sleep(5) }
    closeSync(out)
  },
  async 'deleted and written anew'(file, text) { unlinkSync(file); await sleep(10); writeFileSync(file, text) },
}

describe('the watcher', () => {
  it.each(Object.keys(saves))('takes in what was saved %s', async how => {
    const at = folder({ 'a.ts': 'one', 'b.ts': 'one' })
    const { loaded, problems } = await follow([at.at('a.ts'), at.at('b.ts')])
    await saves[how]!(at.at('a.ts'), 'two, and longer than before')
    await vi.waitFor(() => { expect(loaded.get(at.at('a.ts'))).toBe('two, and longer than before') }, { interval: 1 })
    expect(loaded.get(at.at('b.ts'))).toBe('one')
    expect(problems).toEqual([])
  })

  it('ends with the last text after hundreds of saves of every kind', async () => {
    const at = folder()
    const files = Array.from({ length: 8 }, (_, index) => at.write(`p${index}.ts`, '0'))
    const { loaded, problems } = await follow(files)
    let version = 0
    for (let round = 0; round < 25; round++) {
      const want = new Map<string, string>()
      await Promise.all(files.map(async file => {
        for (let times = 1 + Math.floor(Math.random() * 2); times > 0; times--) {
          await sleep(Math.random() * 30)
          const text = `version ${++version} ${'x'.repeat(Math.random() * 2000)}`
          want.set(file, text)
          const how = Object.keys(saves)[Math.floor(Math.random() * 5)]!
          await saves[how]!(file, text)
        }
      }))
      await vi.waitFor(() => { for (const [file, text] of want) expect(loaded.get(file)).toBe(text) }, { timeout: 2000, interval: 2 })
    }
    expect(problems).toEqual([])
  })

  it('hands files that were saved together over together', async () => {
    const at = folder()
    const files = Array.from({ length: 20 }, (_, index) => at.write(`p${index}.ts`, 'old'))
    const { loaded, batches } = await follow(files)
    for (const file of files) writeFileSync(file, 'new')
    await vi.waitFor(() => { expect([...loaded.values()].every(text => text === 'new')).toBe(true) })
    expect(batches).toHaveLength(1)
    expect(batches[0]).toHaveLength(20)
  })

  it('says nothing when a file is touched or saved as it was', async () => {
    const at = folder({ 'a.ts': 'same', 'b.ts': 'old' })
    const { loaded, batches } = await follow([at.at('a.ts'), at.at('b.ts')])
    utimesSync(at.at('a.ts'), new Date(), new Date())
    writeFileSync(at.at('a.ts'), 'same')
    writeFileSync(at.at('b.ts'), 'new')
    await vi.waitFor(() => { expect(loaded.get(at.at('b.ts'))).toBe('new') })
    await sleep(250)                                                      // the last re-check has passed
    expect(batches).toEqual([[at.at('b.ts')]])
  })

  it('does not hand over what does not parse while it is still being written', async () => {
    const at = folder({ 'a.ts': 'old' })
    const seen: (string | undefined)[] = []
    const { loaded, problems } = await follow([at.at('a.ts')], { whole: (_, text) => text.endsWith('}'), refuse: files => { seen.push(read(files[0]!)) } })
    writeFileSync(at.at('a.ts'), 'new {')
    await sleep(30)
    appendFileSync(at.at('a.ts'), ' rest }')
    await vi.waitFor(() => { expect(loaded.get(at.at('a.ts'))).toBe('new { rest }') })
    expect(seen).toEqual(['new { rest }'])
    expect(problems).toEqual([])
  })

  it('reports a text that is refused once, soon, and takes the fix', async () => {
    const at = folder({ 'a.ts': 'old' })
    let attempts = 0
    const { loaded, problems } = await follow([at.at('a.ts')], { refuse: files => { attempts++; if (read(files[0]!)!.includes('bad')) throw new Error('it is bad') } })
    writeFileSync(at.at('a.ts'), 'bad')
    await vi.waitFor(() => { expect(problems).toHaveLength(1) }, { interval: 1 })
    expect(problems[0]).toMatchObject({ files: [at.at('a.ts')], error: { message: 'it is bad' } })
    utimesSync(at.at('a.ts'), new Date(), new Date())
    await sleep(250)
    expect(attempts).toBe(1)
    writeFileSync(at.at('a.ts'), 'good')
    await vi.waitFor(() => { expect(loaded.get(at.at('a.ts'))).toBe('good') })
    expect(problems).toHaveLength(1)
  })

  it('holds an empty file and a mere beginning of the text in use back for a quarter of a second', async () => {
    const at = folder({ 'a.yaml': 'plugins: [a, b]' })
    const { loaded, batches } = await follow([at.at('a.yaml')])
    for (const text of ['', 'plugins: [a']) {
      writeFileSync(at.at('a.yaml'), text)
      await sleep(60)
      expect(batches).toEqual([])
      writeFileSync(at.at('a.yaml'), 'plugins: [a, b]')
      await sleep(300)
      expect(batches).toEqual([])
    }
    writeFileSync(at.at('a.yaml'), 'plugins: ')
    await vi.waitFor(() => { expect(loaded.get(at.at('a.yaml'))).toBe('plugins: ') })
  })

  it('takes no half of a file that is written byte by byte', async () => {
    const before = `plugins:\n${Array.from({ length: 12 }, (_, index) => `  - plugin-${index}\n`).join('')}`
    const at = folder({ 'c.yaml': before })
    const seen: (string | undefined)[] = []
    const { loaded } = await follow([at.at('c.yaml')], { settleMs: () => 20, refuse: files => { seen.push(read(files[0]!)) } })
    for (const after of [`# new\n${before}`, `${before}  - one-more\n`, before.slice(0, -20)]) {
      const out = openSync(at.at('c.yaml'), 'w')
      for (const byte of after) { writeSync(out, byte); await sleep(1) }
      closeSync(out)
      await vi.waitFor(() => { expect(loaded.get(at.at('c.yaml'))).toBe(after) })
    }
    expect(seen).toHaveLength(3)
  })

  it('hands over that a file is gone, and that it is back', async () => {
    const at = folder({ 'a.ts': 'old' })
    const { loaded } = await follow([at.at('a.ts')])
    unlinkSync(at.at('a.ts'))
    await vi.waitFor(() => { expect(loaded.get(at.at('a.ts'))).toBeUndefined() })
    writeFileSync(at.at('a.ts'), 'back')
    await vi.waitFor(() => { expect(loaded.get(at.at('a.ts'))).toBe('back') })
  })

  it('sees a file appear that was looked for, in a folder that was not there', async () => {
    const at = folder({ 'a.ts': 'old' })
    const { loaded } = await follow([at.at('a.ts'), at.at('plugins/deep/new.ts')])
    at.write('plugins/deep/new.ts', 'here')
    await vi.waitFor(() => { expect(loaded.get(at.at('plugins/deep/new.ts'))).toBe('here') })
    writeFileSync(at.at('plugins/deep/new.ts'), 'again')
    await vi.waitFor(() => { expect(loaded.get(at.at('plugins/deep/new.ts'))).toBe('again') })
  })

  it('sees a linked file edited through its real path, and a link that leads elsewhere', async () => {
    const at = folder({ 'real/y.ts': 'one', 'real/z.ts': 'other' })
    mkdirSync(at.at('plugins'))
    const link = at.at('plugins/x.ts')
    symlinkSync(at.at('real/y.ts'), link)
    const { loaded, watcher } = await follow([link])
    for (const [index, save] of Object.values(saves).entries()) {
      await save(at.at('real/y.ts'), `two ${index}`)
      await vi.waitFor(() => { expect(loaded.get(link)).toBe(`two ${index}`) })
    }
    unlinkSync(link)
    symlinkSync(at.at('real/z.ts'), link)
    await vi.waitFor(() => { expect(loaded.get(link)).toBe('other') })
    watcher.follow()
    writeFileSync(at.at('real/z.ts'), 'third')
    await vi.waitFor(() => { expect(loaded.get(link)).toBe('third') })
  })

  it('sees a linked folder edited through its real path, and a link that leads elsewhere', async () => {
    const at = folder({ 'one/index.ts': '1', 'two/index.ts': '2', 'plugins/other.ts': '' })
    symlinkSync(at.at('one'), at.at('plugins/linked'))
    const file = at.at('plugins/linked/index.ts')
    const { loaded } = await follow([file])
    writeFileSync(at.at('one/index.ts'), '1b')
    await vi.waitFor(() => { expect(loaded.get(file)).toBe('1b') })
    unlinkSync(at.at('plugins/linked'))
    symlinkSync(at.at('two'), at.at('plugins/linked'))
    await vi.waitFor(() => { expect(loaded.get(file)).toBe('2') })
    writeFileSync(at.at('two/index.ts'), '2b')
    await vi.waitFor(() => { expect(loaded.get(file)).toBe('2b') })
  })

  it('goes on when a folder is swapped for another', async () => {
    const at = folder({ 'pl/x.ts': '0' })
    const file = at.at('pl/x.ts')
    const { loaded } = await follow([file])
    for (let round = 1; round <= 5; round++) {
      at.write('new/x.ts', `swapped ${round}`)
      renameSync(dirname(file), at.at('old'))
      renameSync(at.at('new'), dirname(file))
      rmSync(at.at('old'), { recursive: true })
      await vi.waitFor(() => { expect(loaded.get(file)).toBe(`swapped ${round}`) })
      writeFileSync(file, `edited ${round}`)
      await vi.waitFor(() => { expect(loaded.get(file)).toBe(`edited ${round}`) })
    }
  })

  it('sees a save that keeps size and modification time', async () => {
    const at = folder({ 'a.ts': 'aaa' })
    const file = at.at('a.ts')
    const { loaded } = await follow([file])
    const { atime, mtime } = statSync(file)
    writeFileSync(file, 'bbb')
    utimesSync(file, atime, mtime)
    await vi.waitFor(() => { expect(loaded.get(file)).toBe('bbb') })
  })

  it('stands a file that becomes a folder and a file again', async () => {
    const at = folder({ 'a.ts': 'one' })
    const file = at.at('a.ts')
    const { loaded } = await follow([file])
    unlinkSync(file)
    mkdirSync(file)
    await vi.waitFor(() => { expect(loaded.get(file)).toBeUndefined() })
    rmSync(file, { recursive: true })
    writeFileSync(file, 'two')
    await vi.waitFor(() => { expect(loaded.get(file)).toBe('two') })
  })

  it.each([['a pipe that nobody writes', (file: string) => { execFileSync('mkfifo', [file]) }], ['a device without end', (file: string) => { symlinkSync('/dev/zero', file) }]] as const)('reads nothing of a file that becomes %s, and holds nobody up', async (_, make) => {
    const at = folder({ 'a.ts': 'one' })
    const file = at.at('a.ts')
    const { loaded } = await follow([file])
    unlinkSync(file)
    make(file)
    const late = spawn('sh', ['-c', 'sleep 10; timeout 1 sh -c \'echo late > "$0"\' "$0"', file])      // whoever does wait for a writer is let go, and fails here
    onTestFinished(() => { late.kill('SIGKILL') })
    await vi.waitFor(() => { expect(loaded.get(file)).toBeUndefined() }, { timeout: 5000 })
    unlinkSync(file)
    writeFileSync(file, 'two')
    await vi.waitFor(() => { expect(loaded.get(file)).toBe('two') }, { timeout: 5000 })
  })

  it('is silent after it is closed', async () => {
    const at = folder({ 'a.ts': 'one' })
    const { watcher, batches } = await follow([at.at('a.ts')])
    await watcher.close()
    writeFileSync(at.at('a.ts'), 'two')
    await sleep(100)
    expect(batches).toEqual([])
  })

  it('asks loaded files every second when the system gives it no more watches, and says so', async () => {
    const at = folder({ 'a.ts': 'one' })
    const root = fileURLToPath(new URL('../..', import.meta.url))
    symlinkSync(join(root, 'node_modules'), at.at('node_modules'))
    await build({ input: join(root, 'core/loader/watcher.ts'), platform: 'node', external: ['chokidar'], output: { file: at.at('watcher.mjs'), format: 'esm' }, logLevel: 'silent' })
    const probe = at.write('probe.mjs', `
      import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
      import 'chokidar'
      import { Watcher } from './watcher.mjs'
      const file = ${JSON.stringify(at.at('a.ts'))}
      const open = []
      try { for (;;) open.push(openSync('/dev/null')) } catch {}
      let text = 'one', said = ''
      const log = { debug() {}, info() {}, error() {}, warn(message) { said ||= message; for (const fd of open.splice(0)) closeSync(fd) } }
      const watcher = new Watcher({ files: () => [file], text: () => text, changed: async () => { text = readFileSync(file, 'utf8') }, report() {}, log })
      const starting = watcher.start()
      while (!said) await new Promise(resolve => setTimeout(resolve, 5))
      writeFileSync(file, 'two')
      for (const end = Date.now() + 5000; text !== 'two' && Date.now() < end;) await new Promise(resolve => setTimeout(resolve, 5))
      console.log(JSON.stringify({ text, said }))
      process.exit()
    `)
    const { stdout } = await promisify(execFile)('sh', ['-c', `ulimit -n 48; exec ${JSON.stringify(process.execPath)} ${JSON.stringify(probe)}`])
    expect(JSON.parse(stdout)).toEqual({ text: 'two', said: expect.stringMatching(/^the system allows no more file watches \(EMFILE\): loaded files are asked every 1 s instead/) })
  })

  it('watches folders that are needed, one watch each, and no others', async () => {
    const at = folder()
    for (let index = 0; index < 50; index++) at.write(`plugins/p${index}.ts`, '')
    at.write('lib/one.ts', '')
    const before = watches()
    const files = [at.at('plugins/p1.ts'), at.at('lib/one.ts')]
    const { watcher, loaded } = await follow(files)
    await vi.waitFor(() => { expect(watches() - before).toBe(2) })
    loaded.delete(at.at('lib/one.ts'))
    watcher.follow()
    await vi.waitFor(() => { expect(watches() - before).toBe(1) })
    loaded.set(at.at('lib/one.ts'), '')
    watcher.follow()
    await vi.waitFor(() => { expect(watches() - before).toBe(2) })
    writeFileSync(at.at('lib/one.ts'), 'seen')
    await vi.waitFor(() => { expect(loaded.get(at.at('lib/one.ts'))).toBe('seen') })
  })
})

const watches = (): number => process.getActiveResourcesInfo().filter(kind => kind === 'FSEventWrap' || kind === 'FSEvent').length
