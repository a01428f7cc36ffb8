import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { Workspace, type WorkspaceOptions } from '../../core/agent/workspace.js'
import type { SessionView } from '../../core/agent/vocabulary.js'
import { start } from '../support/process.js'

let base: string, root: string, outside: string, session: SessionView
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'hx-workspace-')))
  root = join(base, 'ws')
  outside = join(base, 'outside')
  for (const folder of [root, join(root, 'sub'), outside, join(base, 'ws-evil')]) mkdirSync(folder)
  writeFileSync(join(root, 'file.txt'), 'inside')
  writeFileSync(join(outside, 'secret.txt'), 'SECRET')
  session = { id: 's', cwd: root, depth: 0, messages: [] }
})
afterEach(() => { rmSync(base, { recursive: true }) })

const workspace = (options: Partial<WorkspaceOptions> = {}) => new Workspace({ protectedPaths: () => [], home: join(base, 'home'), ...options })
const link = (target: string, ...path: string[]) => { symlinkSync(target, join(root, ...path)) }

describe('what is inside', () => {
  beforeEach(() => {
    link('sub', 'to-sub')
    link('file.txt', 'to-file')
    link(join(base, 'ws', 'sub'), 'absolute')
    link('../outside', 'out')
    link('../outside/secret.txt', 'out-file')
    link('../outside/none.txt', 'dangling-out')
    link('sub/none.txt', 'dangling-in')
    link('loop', 'loop')
    link('out', 'chain')
    link('..', 'up')
  })
  it.each([
    ['.', '.'],
    ['file.txt', 'file.txt'],
    ['./sub/../file.txt', 'file.txt'],
    ['sub/new.txt', 'sub/new.txt'],
    ['new/deep/er.txt', 'new/deep/er.txt'],
    ['to-file', 'file.txt'],
    ['to-sub/new.txt', 'sub/new.txt'],
    ['absolute/new.txt', 'sub/new.txt'],
    ['up/ws/file.txt', 'file.txt'],
    ['...', '...'],
    ['..hidden', '..hidden'],
    ['%2e%2e/outside', '%2e%2e/outside'],
    ['a\\..\\b', 'a\\..\\b'],
    ['./~', '~'],
    ['file.txt/under', 'file.txt/under'],
    ['ü\u0308 \n', 'ü\u0308 \n'],
  ])('%j is, for reading and writing', async (path, expected) => {
    for (const mode of ['read', 'write'] as const) expect(await workspace().resolve(session, path, mode)).toBe(join(root, expected))
    expect(await workspace().resolve(session, join(root, path), 'read')).toBe(join(root, expected))
  })

  it.each([
    '..', '../ws-evil', '../ws-evil/x', '../outside/secret.txt', 'sub/../../outside', '/', '/etc/passwd', '//etc/passwd', 'out', 'out/secret.txt', 'out/new.txt', 'out-file', 'chain/secret.txt',
    'up/outside/secret.txt', 'up/new.txt', 'dangling-out', 'dangling-in', 'dangling-out/x', 'loop', 'loop/x', '~', '~/.ssh/id_rsa', '', 'a\0b', '/proc/self/cwd/../../etc', '/proc/self/root/etc/passwd',
    'x'.repeat(300), 'x/'.repeat(3000),
  ])('%j is not, for reading and writing', async path => {
    for (const mode of ['read', 'write'] as const) await expect(workspace().resolve(session, path, mode)).rejects.toMatchObject({ code: 'outside_workspace', message: expect.stringMatching(/^outside_workspace: .*(use|write) /) })
  })

  it('is told to the model in one sentence with the workspace in it', async () => {
    await expect(workspace().resolve(session, '../ws-evil', 'read')).rejects.toThrow(`outside_workspace: "../ws-evil" lies outside the workspace "${root}"; use a path inside it`)
    await expect(workspace().resolve(session, '~/x', 'read')).rejects.toThrow('"~" is not expanded here; write the path out, or "./~" for a folder of that name')
    await expect(workspace().resolve(session, 'dangling-in', 'read')).rejects.toThrow('leads through a link to something that does not exist')
  })

  it('follows a workspace that is itself a link', async () => {
    symlinkSync(root, join(base, 'ws-link'))
    const through = { ...session, cwd: join(base, 'ws-link') }
    expect(await workspace().resolve(through, 'file.txt', 'read')).toBe(join(root, 'file.txt'))
    expect(await workspace().resolve(through, join(base, 'ws-link', 'file.txt'), 'write')).toBe(join(root, 'file.txt'))
    await expect(workspace().resolve(through, '../outside', 'read')).rejects.toMatchObject({ code: 'outside_workspace' })
  })

  it('is everything when the workspace is the root folder', async () => {
    expect(await workspace().resolve({ ...session, cwd: '/' }, outside, 'write')).toBe(outside)
  })

  it('has further roots, which may change, be links, or be missing', async () => {
    let roots = [join(base, 'none'), outside]
    const service = workspace({ roots: () => roots })
    expect(await service.resolve(session, '../outside/secret.txt', 'read')).toBe(join(outside, 'secret.txt'))
    expect(await service.resolve(session, 'out/new.txt', 'write')).toBe(join(outside, 'new.txt'))
    await expect(service.resolve(session, '../ws-evil', 'read')).rejects.toMatchObject({ code: 'outside_workspace' })
    roots = []
    await expect(service.resolve(session, 'out/new.txt', 'write')).rejects.toMatchObject({ code: 'outside_workspace' })
  })

  it('includes the own output folder of the session, for reading', async () => {
    const service = workspace({ outputPath: id => join(base, 'state', id, 'output'), secretPaths: () => [join(base, 'state')] })
    const output = join(base, 'state', 's', 'output', '1.txt')
    expect(await service.resolve(session, output, 'read')).toBe(output)
    await expect(service.resolve(session, output, 'write')).rejects.toMatchObject({ code: 'protected_path' })
    await expect(service.resolve(session, join(base, 'state', 'other', 'output', '1.txt'), 'read')).rejects.toMatchObject({ code: 'protected_path' })
    expect(existsSync(join(base, 'state'))).toBe(false)
    const both = workspace({ outputPath: id => [join(base, 'state', id), join(base, 'memory', id)] })
    expect(await both.resolve(session, join(base, 'memory', 's', '1.txt'), 'read')).toBe(join(base, 'memory', 's', '1.txt'))
  })
})

describe('what is protected', () => {
  const refusedWrite = async (service: Workspace, path: string) => {
    await expect(service.resolve(session, path, 'write'), path).rejects.toMatchObject({ code: 'protected_path', message: expect.stringMatching(/^protected_path: .* is never written by tools/) })
  }
  it('is not written, there or not, by whatever way it is reached', async () => {
    link('.', 'self')
    mkdirSync(join(root, 'plugins'))
    link('plugins', 'p')
    const service = workspace({ protectedPaths: () => [join(root, 'plugins'), join(root, 'my.yaml'), join(root, 'absent', 'trust.json')] })
    for (const path of ['plugins', 'plugins/guard.ts', 'plugins/new/x.ts', 'p/guard.ts', 'self/plugins/guard.ts', 'sub/../plugins/x', 'PLUGINS/guard.ts', 'my.yaml', 'My.YAML', 'absent/trust.json']) await refusedWrite(service, path)
    for (const path of ['plugins-2/x', 'absent/other.json', 'my.yaml.bak']) expect(await service.resolve(session, path, 'write')).toBe(join(root, path))
    expect(await service.resolve(session, 'plugins/guard.ts', 'read')).toBe(join(root, 'plugins/guard.ts'))
  })

  it('is also where a protected link leads', async () => {
    link('sub', 'plugins')
    const service = workspace({ protectedPaths: () => [join(root, 'plugins')] })
    await refusedWrite(service, 'sub/guard.ts')
  })

  it.each(['harness.config.yaml', 'sub/harness.config.yaml', 'Harness.Config.YAML', '.git/hooks/pre-commit', '.git/config', '.git', 'sub/.git', 'sub/.GIT/config', '.git/modules/x/hooks/y', '.git/worktrees/x/config.worktree'])('is %j in any workspace', async path => {
    await refusedWrite(workspace(), path)
    expect(await workspace().resolve(session, path, 'read')).toBe(join(root, path))
  })
  it.each(['.gitignore', '.github/workflows/x.yml', 'harness.config.yaml.md', 'git/config'])('is not %j', async path => {
    expect(await workspace().resolve(session, path, 'write')).toBe(join(root, path))
  })

  it('are the start files of the shell, git and ssh in the home folder, and what they link to', async () => {
    const service = workspace({ home: root })
    link('sub/zshrc', '.zshrc')
    writeFileSync(join(root, 'sub', 'zshrc'), '')
    for (const path of ['.bashrc', '.profile', '.ssh/authorized_keys', '.config/fish/config.fish', '.gitconfig', '.zshrc', 'sub/zshrc']) await refusedWrite(service, path)
    expect(await service.resolve(session, 'sub/.bashrc', 'write')).toBe(join(root, 'sub/.bashrc'))
  })

  it('is not read either when it is secret', async () => {
    const service = workspace({ secretPaths: () => [join(root, 'run')] })
    for (const mode of ['read', 'write'] as const) await expect(service.resolve(session, 'run/token', mode)).rejects.toMatchObject({ code: 'protected_path' })
  })
})

describe('a path that is opened for one call', () => {
  const target = () => join(outside, 'secret.txt')
  it('is open to that call alone, once a person said yes, until it is over', async () => {
    const service = workspace(), one = service.callView(session, 'one'), two = service.callView(session, 'two'), other = service.callView({ ...session, id: 'other' }, 'one')
    service.openFor(session, 'one', target(), 'read')
    await expect(service.resolve(one, target(), 'read')).rejects.toMatchObject({ code: 'outside_workspace' })
    service.approve(session, 'one')
    expect(await service.resolve(one, target(), 'read')).toBe(target())
    expect((await service.readFile(one, '../outside/secret.txt')).toString()).toBe('SECRET')
    for (const view of [session, two, other, { ...one }]) await expect(service.resolve(view, target(), 'read')).rejects.toMatchObject({ code: 'outside_workspace' })
    await expect(service.resolve(one, target(), 'write')).rejects.toMatchObject({ code: 'outside_workspace' })
    await expect(service.resolve(one, outside, 'read')).rejects.toMatchObject({ code: 'outside_workspace' })
    service.forget(session, 'one')
    await expect(service.resolve(one, target(), 'read')).rejects.toMatchObject({ code: 'outside_workspace' })
  })

  it('may be a folder, with what is below it; a yes to writing is one to reading', async () => {
    const service = workspace(), view = service.callView(session, 'c')
    service.openFor(session, 'c', '../outside', 'write')
    service.approve(session, 'c')
    await service.writeFile(view, '../outside/new/file.txt', 'x')
    expect((await service.readFile(view, '../outside/new/file.txt')).toString()).toBe('x')
    await expect(service.resolve(view, '../ws-evil', 'read')).rejects.toMatchObject({ code: 'outside_workspace' })
  })

  it('may be a file in a folder that does not exist', async () => {
    const service = workspace(), view = service.callView(session, 'c')
    service.openFor(session, 'c', join(base, 'brand', 'new.txt'), 'write')
    service.approve(session, 'c')
    await service.writeFile(view, join(base, 'brand', 'new.txt'), 'x')
    expect(readFileSync(join(base, 'brand', 'new.txt'), 'utf8')).toBe('x')
    await expect(service.writeFile(view, join(base, 'brand', 'other.txt'), 'x')).rejects.toMatchObject({ code: 'outside_workspace' })
  })

  it('is the place that was shown, also when a link is put there later', async () => {
    const service = workspace(), view = service.callView(session, 'c')
    service.openFor(session, 'c', join(base, 'later'), 'read')
    service.approve(session, 'c')
    await expect(service.readFile(view, join(base, 'later'))).rejects.toMatchObject({ code: 'ENOENT' })
    symlinkSync(target(), join(base, 'later'))
    await expect(service.readFile(view, join(base, 'later'))).rejects.toMatchObject({ code: 'outside_workspace' })
  })

  it('is never a protected one, nor one that can not be resolved', async () => {
    const service = workspace({ protectedPaths: () => [outside] }), view = service.callView(session, 'c')
    for (const path of ['../outside/x', '~/x', 'a\0']) service.openFor(session, 'c', path, 'write')
    service.approve(session, 'c')
    await expect(service.resolve(view, '../outside/x', 'write')).rejects.toMatchObject({ code: 'protected_path' })
    await expect(service.resolve(view, '~/x', 'write')).rejects.toMatchObject({ code: 'outside_workspace' })
  })

  it('is seen through a view that shows the session as it is', () => {
    const view = workspace().callView({ ...session, parent: 'p', messages: [{ role: 'user', content: [] }] }, 'c')
    expect(view).toMatchObject({ id: 's', cwd: root, parent: 'p', depth: 0, messages: [{ role: 'user' }] })
    expect(structuredClone(view)).toEqual({ ...view })
  })
})

describe('readFile', () => {
  it('reads all, or a piece', async () => {
    writeFileSync(join(root, 'big'), Buffer.alloc(1_000_000, 'abcdefghij'))
    expect((await workspace().readFile(session, 'file.txt')).toString()).toBe('inside')
    expect(await workspace().readFile(session, 'big')).toHaveLength(1_000_000)
    expect((await workspace().readFile(session, 'big', { offset: 999_995, maxBytes: 100 })).toString()).toBe('fghij')
    expect((await workspace().readFile(session, 'big', { maxBytes: 3 })).toString()).toBe('abc')
    expect(await workspace().readFile(session, 'file.txt', { offset: 100 })).toHaveLength(0)
    expect(await workspace().readFile(session, 'file.txt', { maxBytes: 0 })).toHaveLength(0)
  })
  it('says what the file system says', async () => {
    await expect(workspace().readFile(session, 'none')).rejects.toMatchObject({ code: 'ENOENT' })
    await expect(workspace().readFile(session, 'sub')).rejects.toMatchObject({ code: 'EISDIR' })
    await expect(workspace().readFile(session, 'file.txt/x')).rejects.toMatchObject({ code: 'ENOTDIR' })
  })
  it('does not wait at a pipe', async () => {
    execFileSync('mkfifo', [join(root, 'pipe')])
    await expect(workspace().readFile(session, 'pipe')).rejects.toMatchObject({ code: 'EINVAL' })
  })
})

describe('writeFile', () => {
  it('makes a file and its folders, and leaves nothing beside it', async () => {
    await workspace().writeFile(session, 'a/b/c.txt', 'text')
    await workspace().writeFile(session, 'a/b/c.bin', Buffer.from([0, 255]))
    expect(readFileSync(join(root, 'a/b/c.txt'), 'utf8')).toBe('text')
    expect(readdirSync(join(root, 'a/b')).sort()).toEqual(['c.bin', 'c.txt'])
  })
  it('replaces a file, keeps its mode, and does not write through a hard link', async () => {
    writeFileSync(join(root, 'run.sh'), 'old', { mode: 0o755 })
    linkSync(join(root, 'run.sh'), join(outside, 'same'))
    await workspace().writeFile(session, 'run.sh', 'new')
    expect(statSync(join(root, 'run.sh')).mode & 0o777).toBe(0o755)
    expect(readFileSync(join(outside, 'same'), 'utf8')).toBe('old')
    await workspace().writeFile(session, 'run.sh', 'newer', { mode: 0o600 })
    expect(statSync(join(root, 'run.sh')).mode & 0o777).toBe(0o600)
  })
  it('writes where a link inside leads, and keeps the link', async () => {
    link('file.txt', 'alias')
    await workspace().writeFile(session, 'alias', 'through')
    expect(readFileSync(join(root, 'file.txt'), 'utf8')).toBe('through')
    expect(readdirSync(root)).toContain('alias')
  })
  it('refuses a folder and what is below a file, and leaves nothing behind', async () => {
    await expect(workspace().writeFile(session, 'sub', 'x')).rejects.toMatchObject({ code: 'EISDIR' })
    await expect(workspace().writeFile(session, '.', 'x')).rejects.toThrow()
    await expect(workspace().writeFile(session, 'file.txt/x', 'x')).rejects.toMatchObject({ code: 'ENOTDIR' })
    expect(readdirSync(root).filter(name => name.includes('.hx-'))).toEqual([])
  })
  it('does not pass over a file that may not be written', async () => {
    chmodSync(join(root, 'file.txt'), 0o444)
    const attempt = workspace().writeFile(session, 'file.txt', 'x')
    if (process.getuid?.() === 0) await attempt                                                     // root may write everything
    else await expect(attempt).rejects.toMatchObject({ code: 'EACCES' })
  })
  it('writes many files of a new folder at once', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => workspace().writeFile(session, `new/deep/${index}`, `${index}`)))
    expect(readdirSync(join(root, 'new/deep'))).toHaveLength(20)
  })
})

it('lets nothing out while somebody swaps a folder for a link', async () => {
  const program = fileURLToPath(new URL('../support/processes/swapper.mjs', import.meta.url))
  mkdirSync(join(outside, 'inner'))
  writeFileSync(join(outside, 'inner', 'secret.txt'), 'SECRET')
  const swapper = start(process.execPath, [program, join(root, 'sub'), outside])
  onTestFinished(() => swapper.kill())
  expect(await swapper.line()).toBe('swapping')
  const service = workspace(), until = Date.now() + 2000
  const seen = { read: 0, wrote: 0, refused: 0 }
  for (let i = 0; Date.now() < until; i++) {
    const tries = [
      service.readFile(session, 'sub/inner/secret.txt').then(data => { seen.read++; expect(data.toString()).toBe('inside') }),
      ...[`sub/new-${i}`, `sub/inner/new-${i}`, `sub/inner/deep-${i}/new`].map(path => service.writeFile(session, path, 'x').then(() => { seen.wrote++ })),
    ]
    for (const outcome of await Promise.allSettled(tries)) {
      if (outcome.status === 'fulfilled') continue
      seen.refused++
      expect(String(outcome.reason)).toMatch(/outside_workspace|ENOENT|ELOOP|ENOTDIR/)
    }
  }
  await swapper.kill()
  expect(readdirSync(outside, { recursive: true }).sort()).toEqual(['inner', 'inner/secret.txt', 'secret.txt'])
  for (const count of Object.values(seen)) expect(count, JSON.stringify(seen)).toBeGreaterThan(0)
})
