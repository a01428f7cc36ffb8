import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { promisify } from 'node:util'
import { fileURLToPath } from 'node:url'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { beforeAll, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
let tarball: Buffer
let files: readonly string[]
/** Of the package as it is published. */
beforeAll(async () => {
  const place = mkdtempSync(join(tmpdir(), 'hx-test-'))
  const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', place], { cwd: root, maxBuffer: 10_000_000 })
  const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[]
  tarball = readFileSync(join(place, packed!.filename))
  rmSync(place, { recursive: true })
  files = packed!.files.map(({ path }) => path)
})
const bytes = () => new Uint8Array(tarball)

describe('the package', () => {
  it('is what publint takes for right', async () => {
    const { messages, pkg } = await publint({ pack: { tarball: bytes().buffer } })
    expect(messages.map(message => formatMessage(message, pkg as object))).toEqual([])
  })
  it('has types that resolve as its code does, for every way in which an ES module can be imported', async () => {
    const result = await checkPackage(createPackageFromTarballData(bytes()), { excludeEntrypoints: [/\.json$/] })
    if (!result.types) throw new Error('the package has no types')
    expect(Object.keys(result.entrypoints).sort()).toEqual(['.', './testing'])
    const ofModules = result.problems.filter(problem => !('resolutionKind' in problem) || ['node16-esm', 'bundler'].includes(problem.resolutionKind))      // require and the resolution of old are not what it offers
    expect(ofModules.filter(({ kind }) => kind !== 'CJSResolvesToESM')).toEqual([])
  })
  it('runs nothing when it is imported', async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', `await import(${JSON.stringify(join(root, 'dist/api.js'))}); await import(${JSON.stringify(join(root, 'dist/testing.js'))})`, '--', '--version'])
    expect(stdout + stderr).toBe('')
  })
  it('holds every picture and page that one it holds leads to', () => {
    const missing = files.filter(file => file.endsWith('.md')).flatMap(page => [...readFileSync(join(root, page), 'utf8').matchAll(/\]\(([^)#:]+\.(?:md|svg|png))(?:#[^)]*)?\)/g)].map(([, to]) => posix.join(posix.dirname(page), to!)).filter(to => !files.includes(to)))
    expect(missing).toEqual([])
  })
  it('holds what runs, what is read, and nothing of the tests', () => {
    expect(files).toEqual(expect.arrayContaining(['dist/cli.cjs', 'dist/api.js', 'dist/testing.js', 'dist/schema.json', 'dist/types/core/api.d.ts', 'plugins/README.md', 'harness.config.yaml', 'README.md', 'LICENSE']))
    expect(files.filter(file => /^(?:test|\.ci|node_modules)\/|\.map$|^dist\/(?:bench|soak)\//.test(file))).toEqual([])
  })
})
