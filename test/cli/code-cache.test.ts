/** Code that stays compiled from one command to the next: Node's own cache where it has one, ours where it has none (Node 20). */
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { place } from '../support/hx.js'

const own = !('enableCompileCache' in module)

describe('compiled code', () => {
  it('is kept in the user\'s own folder, for the owner alone', async () => {
    const { hx, env } = place()
    expect(await hx(['status'])).toMatchObject({ code: 1 })
    const cache = join(env['HX_HOME']!, 'cache'), [build] = readdirSync(cache)
    expect(build).toBeDefined()
    if (!own) return
    expect(statSync(join(cache, build!)).mode & 0o777).toBe(0o700)
    const files = readdirSync(join(cache, build!))
    expect(files).toContain('chunks+base.cjs')
    expect(files).not.toContain('chunks+host.cjs')          // who only asks loads no host
    expect(files.map(file => statSync(join(cache, build!, file)).mode & 0o777)).toEqual(files.map(() => 0o600))
  })
  it('is all that a start with the shipped plugins runs', async () => {
    const { hx, env } = place()
    expect(await hx(['agent', '--offline', 'hello'])).toMatchObject({ code: 0 })
    if (!own) return
    const cache = join(env['HX_HOME']!, 'cache'), kept = readdirSync(join(cache, readdirSync(cache)[0]!))
    expect(kept).toEqual(expect.arrayContaining(['chunks+base.cjs', 'chunks+host.cjs', 'plugins+permission.cjs', 'plugins+tool-fs.cjs']))   // a real `import` in one of them would keep it out
  })
  it('is made anew when a file of it is damaged, empty or gone', async () => {
    const { hx, env } = place()
    await hx(['status'])
    const cache = join(env['HX_HOME']!, 'cache'), folder = join(cache, readdirSync(cache)[0]!), kept = readdirSync(folder)
    kept.forEach((file, index) => {
      const path = join(folder, file)
      if (index % 3 === 0) rmSync(path, { recursive: true })
      else if (statSync(path).isFile()) writeFileSync(path, index % 3 === 1 ? '' : Buffer.concat([readFileSync(path).subarray(0, 100), Buffer.alloc(5000, 7)]))
    })
    const before = await hx(['--help'])
    expect(before).toMatchObject({ code: 0, stderr: '' })
    expect(await hx(['status'])).toMatchObject({ code: 1, stderr: expect.stringContaining('no daemon') })
    if (own) expect(readdirSync(folder).sort()).toEqual(kept.sort())
  })
  it('is done without where it can not be kept', async () => {
    const { hx, env } = place()
    mkdirSync(env['HX_HOME']!)
    writeFileSync(join(env['HX_HOME']!, 'cache'), 'a file stands here')
    expect(await hx(['--version'])).toMatchObject({ code: 0, stderr: '' })
    rmSync(join(env['HX_HOME']!, 'cache'))
    mkdirSync(join(env['HX_HOME']!, 'cache'))
    chmodSync(join(env['HX_HOME']!, 'cache'), 0o500)
    expect(await hx(['--version'])).toMatchObject({ code: 0, stderr: '' })
  })
  it('of builds that are not used any more is removed after a while', async () => {
    const { hx, env } = place()
    const cache = join(env['HX_HOME']!, 'cache')
    mkdirSync(join(cache, 'of-an-old-build'), { recursive: true })
    const longAgo = Date.now() / 1000 - 40 * 24 * 3600
    utimesSync(join(cache, 'of-an-old-build'), longAgo, longAgo)
    await hx(['status'])
    expect(readdirSync(cache).includes('of-an-old-build')).toBe(!own)          // Node leaves its own alone
  })
})
