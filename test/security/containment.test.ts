/** Every file tool, on every way out of the workspace that a path can spell, and while somebody swaps what the path goes through. */
import { spawn } from 'node:child_process'
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import * as toolFs from '../../plugins/tool-fs/index.js'
import { folder } from '../support/folder.js'
import { pluginHost } from '../support/plugin-host.js'

const CANARY = 'hx-canary-outside'
async function setUp() {
  const host = await pluginHost([{ module: toolFs }], { files: { 'a.txt': 'mine\n', 'sub/b.txt': 'mine\n', 'Caf\u00e9/x.txt': 'mine\n' } })
  const outside = folder({ 'secret.txt': `${CANARY}\n`, 'deep/secret.txt': `${CANARY}\n` }), at = (name: string) => host.folder.at(name)
  symlinkSync(outside.path, at('folder-link'))
  symlinkSync(outside.at('secret.txt'), at('file-link'))
  symlinkSync(outside.at('missing.txt'), at('dangling'))
  symlinkSync('folder-link', at('link-to-link'))
  symlinkSync('/', at('root-link'))
  symlinkSync('/proc/self/cwd', at('cwd-link'))
  symlinkSync('.', at('self'))
  symlinkSync('loop-b', at('loop-a'))
  symlinkSync('loop-a', at('loop-b'))
  mkdirSync(`${host.folder.path}-evil`)
  onTestFinished(() => { rmdir(`${host.folder.path}-evil`) })
  const up = relative(host.folder.path, outside.path), home = basename(host.folder.path)
  /** A file behind `x`, by each way out. */
  const ways = [
    outside.at('secret.txt'), `${up}/secret.txt`, `./${up}/secret.txt`, `sub/../${up}/secret.txt`, `sub/./.././${up}/secret.txt`, `nowhere/../${up}/secret.txt`, `//${outside.path}//secret.txt`, `${outside.path}/./secret.txt`, `${outside.path}/deep/../secret.txt`, `${outside.path}/secret.txt/`, `${outside.path}/secret.txt/.`,
    'file-link', './file-link', 'self/file-link', 'self/self/self/folder-link/secret.txt', 'folder-link/secret.txt', 'folder-link/./secret.txt', 'folder-link/deep/../secret.txt', 'link-to-link/secret.txt', `root-link${outside.path}/secret.txt`, `cwd-link/${relative(process.cwd(), outside.path)}/secret.txt`, 'folder-link/new.txt', 'folder-link/new/new.txt', 'dangling',
    `/proc/self/root${outside.path}/secret.txt`, `/proc/${process.pid}/root${outside.path}/secret.txt`, `/proc/self/cwd/${relative(process.cwd(), outside.path)}/secret.txt`, `/dev/fd/../../..${outside.path}/secret.txt`, '/dev/fd/0', '/dev/stdin', '/proc/self/fd/1', `../${home}-evil/x.txt`, `${host.folder.path}-evil/x.txt`, `${host.folder.path}/../${home}-evil/x.txt`,
    `${'sub/../'.repeat(500)}${up}/secret.txt`, `${'./'.repeat(1500)}${up}/secret.txt`, `a.txt\0/../${up}/secret.txt`, `${up}/secret.txt\0.txt`, `~/x.txt`, `~root/x.txt`, `file://${outside.at('secret.txt')}`, `${up.replace('..', '\u2024\u2024')}/secret.txt`, `${up.replaceAll('/', '\\')}\\secret.txt`, `%2e%2e/${up}/secret.txt`, 'loop-a', 'loop-a/x.txt', 'x'.repeat(5000), `${'d/'.repeat(3000)}x`,
  ]
  return { host, outside, ways }
}
const rmdir = (path: string) => { for (const name of readdirSync(path)) throw new Error(`something was written outside: ${name}`) }

it('no spelling of a path leads a file tool out: nothing is read, written or made there', async () => {
  const { host, outside, ways } = await setUp()
  const calls = ways.flatMap(path => [
    { name: 'read_file', arguments: { path } }, { name: 'write_file', arguments: { path, content: 'x' } }, { name: 'edit_file', arguments: { path, old_text: CANARY, new_text: 'x' } }, { name: 'grep', arguments: { pattern: 'canary', path } }, { name: 'glob', arguments: { pattern: path } },
  ])
  const { results } = await host.run([[...calls, { name: 'glob', arguments: { pattern: '**/*secret*' } }, { name: 'grep', arguments: { pattern: 'canary' } }, { name: 'glob', arguments: { pattern: '{..,folder-link}/**' } }, { name: 'grep', arguments: { pattern: 'canary', glob: '../**' } }]])
  expect(results).toHaveLength(calls.length + 4)
  expect(calls.flatMap((call, i) => results[i]!.includes(CANARY) && !JSON.stringify(call).includes(CANARY) ? [[call, results[i]]] : [])).toEqual([])
  expect(readFileSync(outside.at('secret.txt'), 'utf8')).toBe(`${CANARY}\n`)
  expect(readdirSync(outside.path).sort()).toEqual(['deep', 'secret.txt'])
  expect(existsSync(`${host.folder.path}-evil/x.txt`)).toBe(false)
  expect(readFileSync(host.folder.at('a.txt'), 'utf8')).toBe('mine\n')
}, 60_000)

it('a name is one file in whatever form it is written, and a hard link is replaced, not written through', async () => {
  const { host, outside } = await setUp()
  for (const path of ['Caf\u00e9/x.txt', './Caf\u00e9//x.txt', 'Cafe\u0301/x.txt', 'sub/./b.txt', 'self/self/a.txt']) expect([path, (await host.call('read_file', { path })).read]).toEqual([path, expect.stringMatching(/^mine|does not exist|not found|no such|outside/i)])
  linkSync(outside.at('secret.txt'), host.folder.at('hard.txt'))
  await host.call('write_file', { path: 'hard.txt', content: 'x' })
  await host.call('edit_file', { path: 'hard.txt', old_text: 'x', new_text: 'y' })
  expect([readFileSync(host.folder.at('hard.txt'), 'utf8'), readFileSync(outside.at('secret.txt'), 'utf8')]).toEqual(['y', `${CANARY}\n`])
})

it('nothing comes out, or goes in, while folders and files are swapped for links all the time', async () => {
  const { host, outside } = await setUp(), root = host.folder.path
  const swapper = spawn(process.execPath, ['-e', `
    const fs = require('node:fs'), root = ${JSON.stringify(root)}, out = ${JSON.stringify(outside.path)}
    fs.mkdirSync(root + '/real'); fs.writeFileSync(root + '/real/secret.txt', 'mine'); fs.symlinkSync(out, root + '/evil'); fs.writeFileSync(root + '/plain', 'mine'); fs.symlinkSync(out + '/secret.txt', root + '/evil-file'); fs.mkdirSync(root + '/swap'); fs.writeFileSync(root + '/swapped', '')
    console.log('ready')
    for (;;) for (const [from, to] of [['real', 'swap'], ['evil', 'swap'], ['plain', 'swapped'], ['evil-file', 'swapped']]) {
      try { fs.renameSync(root + '/' + to, root + '/.aside'); fs.renameSync(root + '/' + from, root + '/' + to); fs.renameSync(root + '/' + to, root + '/' + from); fs.renameSync(root + '/.aside', root + '/' + to) } catch {}
    }`], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => { swapper.kill('SIGKILL') })
  await new Promise(resolve => { swapper.stdout.once('data', resolve) })
  const call = (i: number) => [
    { name: 'read_file', arguments: { path: 'swap/secret.txt' } }, { name: 'write_file', arguments: { path: `swap/new-${i}.txt`, content: 'x' } }, { name: 'edit_file', arguments: { path: 'swapped', old_text: CANARY, new_text: 'x' } }, { name: 'read_file', arguments: { path: 'swapped' } },
    { name: 'write_file', arguments: { path: 'swapped', content: 'x' } }, { name: 'grep', arguments: { pattern: 'canary', path: 'swap' } }, { name: 'glob', arguments: { pattern: 'swap/*' } }, { name: 'write_file', arguments: { path: `swap/d${i}/e.txt`, content: 'x' } },
  ]
  const { results } = await host.run(Array.from({ length: 15 }, (_, i) => call(i)))
  swapper.kill('SIGKILL')
  expect(results.length).toBe(120)
  expect([/^mine/, /^wrote|^created|^made/, /outside_workspace/].map(kind => results.some(result => kind.test(result))), 'the race was one').toEqual([true, true, true])
  expect(results.filter(result => result.includes(`${CANARY}\n`) || result === CANARY || /deep\/secret/.test(result))).toEqual([])
  expect(readFileSync(outside.at('secret.txt'), 'utf8')).toBe(`${CANARY}\n`)
  expect(readdirSync(outside.path).sort()).toEqual(['deep', 'secret.txt'])
}, 60_000)
