import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const read = (file: string) => readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8')
interface Locked { readonly version?: string; readonly resolved?: string; readonly integrity?: string; readonly dev?: boolean; readonly optional?: boolean; readonly peer?: boolean; readonly devOptional?: boolean; readonly hasInstallScript?: boolean; readonly link?: boolean }
const lock = JSON.parse(read('package-lock.json')) as { readonly lockfileVersion: number; readonly packages: Readonly<Record<string, Locked>> }
const manifest = JSON.parse(read('package.json')) as { readonly dependencies: Readonly<Record<string, string>>; readonly devDependencies: Readonly<Record<string, string>>; readonly peerDependenciesMeta?: Readonly<Record<string, { optional?: boolean }>>; readonly scripts: Readonly<Record<string, string>>; readonly publishConfig: object }
const installed = Object.entries(lock.packages).filter(([path, one]) => path !== '' && !one.dev && !one.peer && !one.devOptional)

describe('what an install brings', () => {
  it('is at most 15 packages that we name and 60 in all, on every platform together', () => {
    expect(Object.keys(manifest.dependencies).length).toBeLessThanOrEqual(15)
    // One platform's build of a native package is installed, not each: those of one kind count as one.
    const names = new Set(installed.map(([path]) => path.replace(/^.*node_modules\//, '').replace(/^(@oxc-transform)\/binding-.*$/, '$1/binding')))
    expect(names.size).toBeLessThanOrEqual(60)
    expect(names.size).toBeGreaterThan(Object.keys(manifest.dependencies).length)
  })
  it('is pinned to the last digit, by us and in the lockfile, with a digest for each', () => {
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/)
    for (const [path, { version, integrity, link }] of Object.entries(lock.packages)) if (path !== '' && !link) expect([path, version, integrity]).toEqual([path, expect.stringMatching(/^\d/), expect.stringMatching(/^sha512-/)])
  })
  it('runs no script of a package: none needs one, and none of ours runs at an install', () => {
    expect(installed.filter(([, { hasInstallScript, optional }]) => hasInstallScript && !optional).map(([path]) => path)).toEqual([])
    expect(Object.keys(manifest.scripts).filter(name => /^(pre|post)?install$|^prepare$/.test(name))).toEqual([])
  })
  it('names no host of a registry, so that it is taken from whichever one is set', () => {
    expect(lock.lockfileVersion).toBe(3)
    expect(Object.values(lock.packages).filter(({ resolved }) => resolved !== undefined && /^[a-z+]+:/.test(resolved))).toEqual([])
  })
  it('is published with a statement of where it was built, and the run of CI asks for the signatures of what it installs', () => {
    expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true })
    expect(read('.ci/run')).toContain('npm audit signatures')
    expect(read('.ci/run')).toContain('npm ci --ignore-scripts')
  })
  it('leaves the heavy ones to whoever switches their plugin on', () => {
    for (const name of ['@modelcontextprotocol/sdk', 'fastify', 'ink', 'express', '@opentelemetry/sdk-node']) expect(manifest.dependencies, name).not.toHaveProperty(name)
    for (const [name, { optional }] of Object.entries(manifest.peerDependenciesMeta ?? {})) expect([name, optional]).toEqual([name, true])
  })
})
