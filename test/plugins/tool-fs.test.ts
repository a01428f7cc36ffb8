/** The file tools on real files, through the real workspace. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Tool, ToolRun } from 'harnessx'
import { Workspace } from '../../core/agent/workspace.js'
import { editFileTool } from '../../plugins/tool-fs/edit-file.js'
import { globTool } from '../../plugins/tool-fs/glob.js'
import { grepTool } from '../../plugins/tool-fs/grep.js'
import { Config } from '../../plugins/tool-fs/index.js'
import { inLine } from '../../plugins/tool-fs/in-line.js'
import { readFileTool } from '../../plugins/tool-fs/read-file.js'
import { writeFileTool } from '../../plugins/tool-fs/write-file.js'

let dir: string, outside: string
beforeEach(() => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'hx-test-')))
  dir = join(base, 'ws')
  outside = join(base, 'outside')
  mkdirSync(dir)
  mkdirSync(outside)
})
afterEach(() => { rmSync(dirname(dir), { recursive: true, force: true }) })

const put = (path: string, content: string | Uint8Array): void => {
  mkdirSync(dirname(join(dir, path)), { recursive: true })
  writeFileSync(join(dir, path), content)
}
const get = (path: string): string => readFileSync(join(dir, path), 'utf8')

const MAKERS = {
  read_file: (ws: Workspace, config: ReturnType<typeof Config.parse>) => readFileTool(ws, config),
  write_file: (ws: Workspace) => writeFileTool(ws, inLine()),
  edit_file: (ws: Workspace, config: ReturnType<typeof Config.parse>) => editFileTool(ws, config, inLine()),
  glob: (ws: Workspace, config: ReturnType<typeof Config.parse>) => globTool(ws, config),
  grep: (ws: Workspace, config: ReturnType<typeof Config.parse>) => grepTool(ws, config),
} satisfies Record<string, (ws: Workspace, config: ReturnType<typeof Config.parse>) => Tool>

interface Given { config?: object; signal?: AbortSignal }
async function use(name: keyof typeof MAKERS, args: object, given: Given = {}): Promise<string> {
  const tool = MAKERS[name](new Workspace({ protectedPaths: () => [] }), Config.parse(given.config ?? {}))
  const run = { session: { id: 's1', cwd: dir, depth: 0, messages: [] }, turn: 1, step: 0, callId: 'c1', signal: given.signal ?? new AbortController().signal, outputDir: outside, launch: argv => argv, lingers: () => {}, progress: () => {} } satisfies ToolRun
  const result = await tool.execute(args as never, run)
  return typeof result === 'string' ? result : result.content
}

describe('read_file', () => {
  it('gives a small file as it is', async () => {
    put('a.txt', 'one\n  two\n\nfour')
    expect(await use('read_file', { path: 'a.txt' })).toBe('one\n  two\n\nfour')
  })
  it('pages a long file and says where to read on, without losing or repeating a line', async () => {
    const lines = Array.from({ length: 4500 }, (_, i) => `line ${i + 1}`)
    put('long.txt', `${lines.join('\n')}\n`)
    const seen: string[] = []
    for (let offset: number | undefined = 1; offset !== undefined;) {
      const page: string = await use('read_file', { path: 'long.txt', offset })
      seen.push(...page.split('\n').filter(line => !line.startsWith('[')))
      offset = /read on with offset (\d+)/.exec(page)?.[1] === undefined ? undefined : Number(/read on with offset (\d+)/.exec(page)![1])
    }
    expect(seen).toEqual(lines)
  })
  it('honours offset and limit', async () => {
    put('a.txt', '1\n2\n3\n4\n5\n')
    expect(await use('read_file', { path: 'a.txt', offset: 2, limit: 2 })).toBe('2\n3\n[lines 2-3 shown, the file goes on: read on with offset 4]')
    expect(await use('read_file', { path: 'a.txt', offset: 4, limit: 2 })).toBe('4\n5\n[lines 4-5 shown, the last one of the file included]')
    expect(await use('read_file', { path: 'a.txt', offset: 9 })).toBe('offset 9 is past the end: the file has 5 lines')
  })
  it('ends a page before it grows over the limit of characters', async () => {
    put('wide.txt', `${'x'.repeat(400)}\n`.repeat(100))
    const page = await use('read_file', { path: 'wide.txt' }, { config: { maxCharacters: 1000 } })
    expect(page).toMatch(/\[lines 1-2 shown, the file goes on: read on with offset 3\]$/)
  })
  it('cuts a long line visibly, never within a character', async () => {
    put('a.txt', `${'x'.repeat(99)}😀😀\nshort\n`)
    expect(await use('read_file', { path: 'a.txt' }, { config: { maxLineLength: 100 } })).toBe(`${'x'.repeat(99)}… [4 more characters in this line]\nshort`)
  })
  it('reads any page of a file of 50 MB without holding it', async () => {
    const line = `${'y'.repeat(99)}\n`
    put('big.log', line.repeat(500_000))
    expect(await use('read_file', { path: 'big.log', offset: 499_999 })).toBe(`${'y'.repeat(99)}\n${'y'.repeat(99)}\n[lines 499999-500000 shown, the last one of the file included]`)
    expect((await use('read_file', { path: 'big.log' })).length).toBeLessThan(46_000)
  })
  it('lists a name with a line end in it as one line that can be sent back, and a name that is not UTF-8 is told as what it is', async () => {
    put('two\nlines.txt', 'needle\n')
    writeFileSync(Buffer.from(join(dir, 'caf\xe9.txt'), 'latin1'), 'x')
    for (const text of [await use('read_file', { path: '.' }), await use('glob', { pattern: '*.txt' }), await use('grep', { pattern: 'needle' })]) expect(text.split('\n').some(line => line.startsWith('"two\\nlines.txt"'))).toBe(true)
    expect(await use('read_file', { path: 'two\nlines.txt' })).toBe('needle')
    await expect(use('read_file', { path: 'caf\ufffd.txt' })).rejects.toThrow('has a name that is not UTF-8')
  })
  it('survives a single line of 20 MB', async () => {
    put('one.json', 'z'.repeat(20_000_000))
    expect(await use('read_file', { path: 'one.json' })).toBe(`${'z'.repeat(2000)}… [19,998,000 more characters in this line]`)
  })
  it('says that a file is binary or empty', async () => {
    put('a.png', new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]))
    put('empty', '')
    expect(await use('read_file', { path: 'a.png' })).toBe('"a.png" is a binary file of 7 bytes; it can not be read as text')
    expect(await use('read_file', { path: 'empty' })).toBe('(empty file)')
  })
  it('drops a BOM, and says when lines end in CRLF or bytes are not UTF-8', async () => {
    put('crlf.txt', '\ufeffa\r\nb\r\n')
    put('latin1.txt', new Uint8Array([0x63, 0x61, 0x66, 0xe9]))
    put('cr.txt', 'old\rmac\r')
    expect(await use('read_file', { path: 'cr.txt' })).toBe('old\rmac\r')
    expect(await use('read_file', { path: 'crlf.txt' })).toBe('a\nb\n[lines end in CRLF; edit_file keeps that]')
    expect(await use('read_file', { path: 'latin1.txt' })).toContain('caf\ufffd\n[U+FFFD')
  })
  it('keeps characters whole across chunks', async () => {
    const text = '€'.repeat(100_000)
    put('euro.txt', `a${text.replace(/(.{1000})/g, '$1\n')}`)
    const first = await use('read_file', { path: 'euro.txt' }, { config: { maxCharacters: 2_000_000 } })
    expect(first).not.toContain('\ufffd')
  })
  it('lists a folder', async () => {
    put('src/b.ts', '')
    put('src/sub/c.ts', '')
    expect(await use('read_file', { path: 'src' })).toBe('"src" is a folder with 2 entries\nb.ts\nsub/')
  })
  it('names what may have been meant when nothing is there', async () => {
    put('src/config.ts', '')
    await expect(use('read_file', { path: 'src/confg.ts' })).rejects.toThrow('"src/confg.ts" does not exist; did you mean "src/config.ts"?')
    await expect(use('read_file', { path: 'src/config.js' })).rejects.toThrow('did you mean "src/config.ts"?')
    await expect(use('read_file', { path: 'lib/config.ts' })).rejects.toThrow('"lib/config.ts" does not exist; the folder "lib" does not exist either')
    await expect(use('read_file', { path: 'src/config.ts/x' })).rejects.toThrow('"src/config.ts/x"')
  })
  it('stays inside', async () => {
    writeFileSync(join(outside, 'secret'), 's')
    symlinkSync(join(outside, 'secret'), join(dir, 'link'))
    await expect(use('read_file', { path: '../outside/secret' })).rejects.toThrow(/^outside_workspace/)
    await expect(use('read_file', { path: 'link' })).rejects.toThrow(/^outside_workspace/)
  })
})

describe('write_file', () => {
  it('makes a file with its folders and says so', async () => {
    expect(await use('write_file', { path: 'a/b/c.txt', content: 'one\ntwo\n' })).toBe('created "a/b/c.txt" (2 lines, 8 bytes)')
    expect(get('a/b/c.txt')).toBe('one\ntwo\n')
  })
  it('replaces a file as a whole and keeps its mode', async () => {
    put('run.sh', 'old content\n')
    chmodSync(join(dir, 'run.sh'), 0o755)
    expect(await use('write_file', { path: 'run.sh', content: 'new' })).toBe('overwrote "run.sh" (1 line, 3 bytes; before: 12 bytes)')
    expect(get('run.sh')).toBe('new')
    expect(statSync(join(dir, 'run.sh')).mode & 0o777).toBe(0o755)
  })
  it('refuses a folder', async () => {
    mkdirSync(join(dir, 'sub'))
    await expect(use('write_file', { path: 'sub', content: '' })).rejects.toThrow('"sub" is a folder, not a file')
  })
  it('does not follow a link out of the workspace, whether it leads to something or not', async () => {
    writeFileSync(join(outside, 'there.txt'), 'kept')
    symlinkSync(join(outside, 'there.txt'), join(dir, 'there.md'))
    symlinkSync(join(outside, 'missing.txt'), join(dir, 'missing.md'))
    for (const path of ['there.md', 'missing.md']) {
      await expect(use('write_file', { path, content: 'x' })).rejects.toThrow(/^outside_workspace/)
      await expect(use('edit_file', { path, old_text: 'kept', new_text: 'x' })).rejects.toThrow(/^outside_workspace/)
    }
    expect(readFileSync(join(outside, 'there.txt'), 'utf8')).toBe('kept')
    expect(existsSync(join(outside, 'missing.txt'))).toBe(false)
  })
})

describe('edit_file', () => {
  const edit = (old_text: string, new_text: string, replace_all = false) => use('edit_file', { path: 'f', old_text, new_text, replace_all })
  it('replaces one passage and names its line', async () => {
    put('f', 'a\nb\nc\n')
    expect(await edit('b', 'B')).toBe('edited "f": 1 replacement, at line 2')
    expect(get('f')).toBe('a\nB\nc\n')
  })
  it('replaces every occurrence when asked to', async () => {
    put('f', 'x y x\nx\n')
    expect(await edit('x', 'zz', true)).toBe('edited "f": 3 replacements, at lines 1, 1, 2')
    expect(get('f')).toBe('zz y zz\nzz\n')
  })
  it('takes patterns of replacement as plain text', async () => {
    put('f', 'price')
    await edit('price', '$& $1 $$')
    expect(get('f')).toBe('$& $1 $$')
  })
  it('changes nothing when there are several, and says where', async () => {
    put('f', 'x\nx\n')
    await expect(edit('x', 'y')).rejects.toThrow('old_text is in "f" 2 times, at lines 1, 2; nothing was changed')
    expect(get('f')).toBe('x\nx\n')
  })
  it('shows what comes nearest when there is none', async () => {
    put('f', 'function a() {\n    return 1\n}\n')
    await expect(edit('function a() {\n  return 1\n}', 'x')).rejects.toThrow('Nearest is line 1, where 3 of 3 lines are equal but for blanks. It reads now:\nfunction a() {\n    return 1\n}')
    await expect(edit('nothing of that', 'x')).rejects.toThrow('nor anything like it; nothing was changed. Read the file again')
  })
  it('works on what is in the file now, not on what was read', async () => {
    put('f', 'let a=1\n')
    await edit('a=1', 'a=2')
    put('f', 'let a = 2;\n')                                               // a formatter came by
    await expect(edit('let a=2', 'let a=3')).rejects.toThrow('old_text is not in "f"')
    await edit('let a = 2', 'let a = 3')
    expect(get('f')).toBe('let a = 3;\n')
  })
  it.each([
    ['keeps CRLF around and inside', 'a\r\nb\r\nc\r\n', 'a\nb', 'a\nB\nB2', 'a\r\nB\r\nB2\r\nc\r\n'],
    ['takes CRLF from the model too', 'a\r\nb\r\n', 'a\r\nb', 'a\r\nc', 'a\r\nc\r\n'],
    ['keeps each line end of a mixed file', 'a\nb\r\nc\nd\r\n', 'a\nb\nc', 'a\nX\nb\nc', 'a\nX\r\nb\r\nc\nd\r\n'],
    ['keeps a BOM', '\ufeffa\nb\n', 'a\nb', 'a\nc', '\ufeffa\nc\n'],
    ['keeps a missing end of the last line', 'a\r\nb', 'b', 'b\nc', 'a\r\nb\r\nc'],
    ['deletes lines', 'a\r\nb\r\nc\r\n', 'b\n', '', 'a\r\nc\r\n'],
    ['leaves a lone CR alone', 'a\rb\n', 'a\rb', 'a\rc', 'a\rc\n'],
  ])('%s', async (_, before, old, wish, after) => {
    put('f', before)
    await edit(old, wish)
    expect(get('f')).toBe(after)
  })
  it('touches nothing but the passage, whatever the line ends', async () => {
    const line = fc.stringMatching(/^[a-z ]{0,6}$/), end = fc.constantFrom('\n', '\r\n')
    await fc.assert(fc.asyncProperty(fc.array(fc.tuple(line, end), { maxLength: 8 }), fc.array(fc.tuple(line, end), { maxLength: 8 }), fc.array(line, { minLength: 1, maxLength: 4 }), async (before, after, wish) => {
      const start = before.flat().join(''), rest = after.flat().join('')
      put('f', `${start}<<one\r\ntwo>>\n${rest}`)
      await edit('<<one\ntwo>>', wish.join('\n'))
      const now = get('f')
      expect(now.startsWith(start)).toBe(true)
      expect(now.endsWith(`\n${rest}`)).toBe(true)
      expect(now.slice(start.length, now.length - rest.length - 1).replaceAll('\r\n', '\n')).toBe(wish.join('\n'))
    }), { numRuns: 100 })
  })
  it('is quick on a large file with many occurrences', async () => {
    put('f', 'one two\r\n'.repeat(200_000))
    const began = performance.now()
    await edit('two', 'three\nfour', true)
    expect(performance.now() - began).toBeLessThan(5000)
    expect(get('f').slice(0, 20)).toBe('one three\r\nfour\r\none')
  })
  it('refuses what is not UTF-8, too large, missing or no change at all', async () => {
    put('f', new Uint8Array([0x61, 0xff]))
    await expect(edit('a', 'b')).rejects.toThrow('"f" is not UTF-8 text and can not be edited')
    put('f', 'x'.repeat(2000))
    await expect(use('edit_file', { path: 'f', old_text: 'x', new_text: 'y' }, { config: { maxEditBytes: 1000 } })).rejects.toThrow('is larger than 1,000 bytes')
    await expect(edit('x', 'x')).rejects.toThrow('nothing would change')
    await expect(use('edit_file', { path: 'none', old_text: 'x', new_text: 'y' })).rejects.toThrow('"none" does not exist; make it with write_file')
    await expect(use('edit_file', { path: '.', old_text: 'x', new_text: 'y' })).rejects.toThrow('is a folder')
  })
  it('loses no edit when two come at once', async () => {
    put('f', Array.from({ length: 20 }, (_, i) => `<${i}>`).join('\n'))
    const tool = editFileTool(new Workspace({ protectedPaths: () => [] }), Config.parse({}), inLine())
    await Promise.all(Array.from({ length: 20 }, (_, i) => tool.execute({ path: 'f', old_text: `<${i}>`, new_text: `[${i}]` } as never, { session: { id: `s${i}`, cwd: dir, depth: 0, messages: [] }, turn: 1, step: 0, callId: 'c', signal: new AbortController().signal, outputDir: outside, launch: argv => argv, lingers: () => {}, progress: () => {} })))
    expect(get('f')).toBe(Array.from({ length: 20 }, (_, i) => `[${i}]`).join('\n'))
  })
})

describe('glob', () => {
  beforeEach(() => {
    for (const file of ['b.ts', 'a.ts', 'src/c.ts', 'src/deep/d.ts', 'src/e.js', '.hidden/f.ts', 'node_modules/m/g.ts', '.git/h.ts']) put(file, '')
    writeFileSync(join(outside, 'o.ts'), '')
    symlinkSync(outside, join(dir, 'way-out'))
  })
  it('finds files, sorted, without node_modules, .git and links', async () => {
    expect(await use('glob', { pattern: '**/*.ts' })).toBe('.hidden/f.ts\na.ts\nb.ts\nsrc/c.ts\nsrc/deep/d.ts')
    expect(await use('glob', { pattern: '*.ts' })).toBe('a.ts\nb.ts')
    expect(await use('glob', { pattern: 'src/*.{ts,js}' })).toBe('src/c.ts\nsrc/e.js')
    expect(await use('glob', { pattern: '*.ts', path: 'src' })).toBe('src/c.ts')
    expect(await use('glob', { pattern: 'src/c.ts' })).toBe('src/c.ts')
  })
  it('looks into node_modules when the pattern names it', async () => {
    expect(await use('glob', { pattern: 'node_modules/**/*.ts' })).toBe('node_modules/m/g.ts')
  })
  it('says when nothing matches, and how many there are when not all are shown', async () => {
    expect(await use('glob', { pattern: '*.py' })).toBe('no file matches "*.py"')
    expect(await use('glob', { pattern: '**/*.ts' }, { config: { maxFiles: 2 } })).toBe('.hidden/f.ts\na.ts\n[the first 2 of 5 files; narrow the pattern to see the others]')
    await expect(use('glob', { pattern: '*', path: 'nowhere' })).rejects.toThrow('"nowhere" does not exist')
  })
  it.each(['../outside/*.ts', 'way-out/*.ts', '**/../../outside/*', 'src/../../outside/*', '{way-out,src}/o.ts', '{..,src}/outside/*', '+(..)/outside/*', '@(way-out)/*'])('finds nothing outside with %s', async pattern => {
    const found = await use('glob', { pattern }).catch(String)
    expect(found).not.toMatch(/o\.ts$/m)
  })
  it('finds nothing outside with an absolute pattern, and takes one that leads inside', async () => {
    await expect(use('glob', { pattern: `${outside}/*.ts` })).rejects.toThrow(/^outside_workspace/)
    expect(await use('glob', { pattern: `${dir}/*.ts` })).toBe('a.ts\nb.ts')
  })
})

describe('grep', () => {
  it('gives file, line and text, in the order of the paths', async () => {
    put('b.txt', 'no\nneedle two\n')
    put('a.txt', 'needle one\r\n')
    expect(await use('grep', { pattern: 'needle \\w+' })).toBe('a.txt:1:needle one\nb.txt:2:needle two')
  })
  it('takes a file, a folder, a glob, and ignores case when asked to', async () => {
    put('src/a.ts', 'Needle\n')
    put('src/a.js', 'Needle\n')
    put('b.ts', 'needle\n')
    expect(await use('grep', { pattern: 'needle' })).toBe('b.ts:1:needle')
    expect(await use('grep', { pattern: 'needle', ignore_case: true, glob: '*.ts' })).toBe('b.ts:1:needle\nsrc/a.ts:1:Needle')
    expect(await use('grep', { pattern: 'Needle', path: 'src', glob: '*.js' })).toBe('src/a.js:1:Needle')
    expect(await use('grep', { pattern: 'Needle', path: 'src/a.ts' })).toBe('src/a.ts:1:Needle')
  })
  it('shows lines around a match once, with a gap between groups', async () => {
    put('a.txt', '1\n2 x\n3\n4 x\n5\n6\n7\n8 x\n9\n')
    expect(await use('grep', { pattern: 'x', context: 1 })).toBe('a.txt-1-1\na.txt:2:2 x\na.txt-3-3\na.txt:4:4 x\na.txt-5-5\n--\na.txt-7-7\na.txt:8:8 x\na.txt-9-9')
  })
  it('says how much was searched when there is no match', async () => {
    put('a.txt', 'x')
    put('b.bin', new Uint8Array([120, 0, 120]))
    expect(await use('grep', { pattern: 'y' })).toBe('[no match in 2 files, 1 of them binary]')
    expect(await use('grep', { pattern: 'x' })).toBe('a.txt:1:x')
  })
  it('stops at the most matches that were asked for', async () => {
    put('a.txt', 'x\n'.repeat(10))
    expect(await use('grep', { pattern: 'x', max_results: 2 })).toBe('a.txt:1:x\na.txt:2:x\n[stopped after 2 matches; there may be more: narrow the pattern, path or glob]')
  })
  it('bounds a million hits', async () => {
    put('hits.txt', 'hit and some more text\n'.repeat(1_000_000))
    const found = await use('grep', { pattern: 'hit' })
    expect(found.split('\n')).toHaveLength(201)
    expect(found.length).toBeLessThan(46_000)
  })
  it('cuts a long line around the match', async () => {
    put('min.js', `${'a'.repeat(10_000)}needle${'b'.repeat(10_000)}\n`)
    const found = await use('grep', { pattern: 'needle' })
    expect(found).toContain('needle')
    expect(found).toContain('20,006 characters in this line')
    expect(found.length).toBeLessThan(700)
  })
  it('never holds the event loop up, also not with a pattern made to', async () => {
    put('evil.txt', `${'a'.repeat(60_000)}\n`.repeat(20))
    put('text.txt', 'abcdefghij klmnopqrst uvwxyz 0123456789\n'.repeat(200_000))
    const loop = monitorEventLoopDelay({ resolution: 5 })
    for (const pattern of ['(a+)+$b', '(x+x+)+y', '(.*a){20}z', '[a-m].{900}[A-Z]', '((a|b).{0,300}(c|d)){1,3}[A-Z]']) {
      const began = performance.now()
      loop.enable()
      await use('grep', { pattern })
      loop.disable()
      expect(performance.now() - began, pattern).toBeLessThan(20_000)
    }
    expect(loop.max / 1e6).toBeLessThan(2000)
  })
  it('stops when the turn does, and when it takes too long', async () => {
    put('text.txt', 'abcdefghij klmnopqrst uvwxyz 0123456789\n'.repeat(500_000))
    const turn = new AbortController()
    setTimeout(() => { turn.abort(new Error('turn over')) }, 20)
    await expect(use('grep', { pattern: '[0-9][a-z]q' }, { signal: turn.signal })).rejects.toThrow('turn over')
    await expect(use('grep', { pattern: '[0-9][a-z]q' }, { config: { searchTimeout: '20ms' } })).rejects.toThrow('the search was given up after 0.02 s')
  })
  it('words a pattern that is not valid', async () => {
    await expect(use('grep', { pattern: 'foo(' })).rejects.toThrow('the pattern is not valid: missing closing ): `foo(`. The syntax is RE2')
    await expect(use('grep', { pattern: '(?=x)' })).rejects.toThrow('no look-around')
  })
  it('neither follows links nor leaves the workspace', async () => {
    writeFileSync(join(outside, 'o.txt'), 'needle')
    symlinkSync(outside, join(dir, 'way-out'))
    symlinkSync(join(outside, 'o.txt'), join(dir, 'o.txt'))
    expect(await use('grep', { pattern: 'needle' })).toBe('[no match in 0 files]')
    await expect(use('grep', { pattern: 'needle', path: 'way-out' })).rejects.toThrow(/^outside_workspace/)
    await expect(use('grep', { pattern: 'needle', glob: 'way-out/*' })).rejects.toThrow(/^outside_workspace/)
  })
})
