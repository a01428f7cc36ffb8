import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { makeFolder, SHARED } from '../../core/kernel/folder.js'
import { folder } from '../support/folder.js'

describe('folders of ours', () => {
  it('are made for the owner alone, and made once', () => {
    const at = folder()
    expect(makeFolder(at.at('a/b'))).toBe(at.at('a'))
    expect(statSync(at.at('a')).mode & 0o777).toBe(0o700)
    expect(statSync(at.at('a/b')).mode & 0o777).toBe(0o700)
    expect(makeFolder(at.at('a/b'))).toBeUndefined()
    expect(makeFolder(at.at('a/c'))).toBe(at.at('a/c'))
  })
  it('are as open as the umask leaves them in a project', () => {
    const at = folder(), before = process.umask(0o022)
    try { makeFolder(at.at('plugins'), SHARED) } finally { process.umask(before) }
    expect(statSync(at.at('plugins')).mode & 0o777).toBe(0o755)
  })
  it('may be a link to a folder, and no file', () => {
    const at = folder()
    mkdirSync(at.at('real'))
    symlinkSync(at.at('real'), at.at('link'))
    writeFileSync(at.at('file'), '')
    expect(makeFolder(at.at('link'))).toBeUndefined()
    expect(() => makeFolder(at.at('file'))).toThrow('EEXIST')
    expect(() => makeFolder(at.at('file/x'))).toThrow('ENOTDIR')
  })
  it.runIf(process.platform === 'linux')('end with an error where the file system makes none, instead of trying for ever', () => {
    expect(() => makeFolder('/proc/hx-none/state/run')).toThrow('ENOENT')
  })
})
