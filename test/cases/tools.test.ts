import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { textOf } from '../../core/agent/vocabulary.js'
import { caseHost } from '../support/case-host.js'

const call = (name: string, args: object) => ({ name, arguments: args })
const host = (files: Record<string, string> = {}) => caseHost({ plugins: {}, shipped: ['tool-fs', 'tool-bash', 'truncate'], files })

describe('odd paths', () => {
  it('never hang, leave the workspace or make what was not meant: pipes, devices, circles of links, folders, endless names', async () => {
    const test = await host({ 'a.txt': 'one\n' })
    execFileSync('mkfifo', [join(test.folder, 'pipe')])
    for (const [name, target] of [['zero', '/dev/zero'], ['loop', 'loop'], ['self', '.'], ['out', '../outside.txt']] as const) symlinkSync(target, join(test.folder, name))
    const paths = ['zero', 'pipe', 'loop', 'out', 'a\0b', 'x'.repeat(300), 'x'.repeat(5000), 'a.txt/b', '~/x', '../outside.txt', '/etc/passwd', '/proc/self/environ', 'self/self/../../../outside.txt']
    const calls = paths.flatMap(path => [call('read_file', { path }), call('write_file', { path, content: 'x' }), call('edit_file', { path, old_text: 'o', new_text: 'x' })])
    test.says({ calls: [...calls, call('write_file', { path: 'new/', content: 'x' }), call('glob', { pattern: '**/*' }), call('grep', { pattern: 'one', path: 'self/..' })] }, 'done')
    const { result, events } = await test.run('go')
    const outcomes = events.flatMap(event => event.type === 'tool-result' ? [event.kind] : [])
    expect(outcomes.slice(0, calls.length + 1)).toEqual([...calls, 1].map(() => 'failed'))
    expect(result.reason).toBe('completed')
    expect([existsSync(join(test.folder, '../outside.txt')), existsSync(join(test.folder, 'new')), readFileSync(join(test.folder, 'a.txt'), 'utf8')]).toEqual([false, false, 'one\n'])
  })
})

describe('a file that a plugin rewrites after each edit', () => {
  it('is edited again as it stands now: what fits is taken, and what does not says what is there', async () => {
    const test = await caseHost({
      plugins: { format: `
        const { readFileSync, writeFileSync } = await import('node:fs')
        ctx.on('agent/post-tool-use', ({ session, call, result }) => {
          if (result.isError || !/^(write|edit)_file$/.test(call.name)) return
          const file = session.cwd + '/' + call.arguments.path
          writeFileSync(file, readFileSync(file, 'utf8').replaceAll('  ', '\\t'))
        })` },
      shipped: ['tool-fs'],
    })
    test.says(
      { calls: [call('write_file', { path: 'a.js', content: 'if (x) {\n  one()\n}\n' })] },
      { calls: [call('edit_file', { path: 'a.js', old_text: '  one()', new_text: '  two()' })] },
      { calls: [call('edit_file', { path: 'a.js', old_text: '\tone()', new_text: '  two()' })] },
      { calls: [call('edit_file', { path: 'a.js', old_text: 'two()', new_text: 'three()' })] }, 'done')
    const { events, results } = await test.run('go')
    expect(events.flatMap(event => event.type === 'tool-result' ? [event.kind] : []).toSpliced(1, 1)).toEqual(['ok', 'ok', 'ok'])
    expect(results[1]).toMatch(/^old_text is not in "a\.js"; nothing was changed\.[^]*It reads now:\n\tone\(\)$/)
    expect(readFileSync(join(test.folder, 'a.js'), 'utf8')).toBe('if (x) {\n\tthree()\n}\n')
  })
})

describe('what tools give back', () => {
  it('stays small in the next request, however much there is: 20 MB of output, a file of 30 MB, a million hits', async () => {
    const test = await host({ 'big.txt': 'hit hit hit hit hit hit\n'.repeat(1_200_000) })
    test.says({ calls: [call('bash', { command: 'head -c 20000000 /dev/zero | tr "\\0" x' }), call('read_file', { path: 'big.txt' }), call('grep', { pattern: 'hit' }), call('bash', { command: 'cat big.txt' })] }, 'done')
    await test.run('go')
    const sizes = test.requests[1]!.messages.filter(({ role }) => role === 'tool').map(message => textOf(message).length)
    expect(sizes).toHaveLength(4)
    expect(Math.max(...sizes)).toBeLessThan(51_000)
    expect(textOf(test.requests[1]!.messages.findLast(({ role }) => role === 'tool')!)).toMatch(/hit hit[^]*characters[^]*hit hit/)
  })
})

describe('odd commands', () => {
  it.each<[string, string, unknown]>([
    ['asks for input', 'read x; echo "got $x"; cat', 'got \n[exit code 0]'],
    ['closes its output', 'exec 1>&- 2>&-; sleep 0.05', '(no output)\n[exit code 0]'],
    ['kills its shell', 'kill -9 $$', '(no output)\n[killed by SIGKILL]'],
    ['leaves a child with its output', 'sleep 30 & echo done', 'done\n[exit code 0]'],
    ['leaves a child in a session of its own', 'setsid sleep 30 & echo hi', 'hi\n[exit code 0]'],
    ['is nothing but a comment', '# nothing', '(no output)\n[exit code 0]'],
    ['has an open quote', `echo "open`, expect.stringContaining('unexpected EOF')],
    ['prints bytes that are no text', `printf '\\xff\\0x'`, '\ufffdx\n[exit code 0]'],
  ])('that one which %s ends at once', async (_, command, read) => {
    const test = await host()
    test.says({ calls: [call('bash', { command })] }, 'done')
    const began = performance.now()
    expect((await test.run('go')).results).toEqual([typeof read === 'string' ? expect.stringContaining(read) : read])
    expect(performance.now() - began).toBeLessThan(8000)
  })
})
