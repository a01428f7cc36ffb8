/**
 * A changed 5 KB TypeScript module until its new version is there, file watching aside, by what loads modules anew: `import(?v=)` (which needs JavaScript and frees nothing), jiti, tsx, Vite's
 * module runner, and a whole reload of a plugin here (compile, state, staged mount, swap, dispose of the old one). They take turns; what is not installed is said and left out.
 */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { transformSync } from 'oxc-transform'
import { startApp } from '../support/app.js'
import { pluginOfSize } from '../support/plugin-source.js'
import { row, type Row } from './row.js'

const ROUNDS = 40, WARM_UP = 10, BYTES = 5_000

/** What a version of the module exports. */
interface Versioned { readonly current: () => number }
interface Loader {
  /** Writes a version, which is not timed. */
  prepare(version: number): void
  load(): Promise<Versioned>
  close?(): Promise<void>
}
/** Not seen by the bundler: these stay what is installed. */
const installed = (name: string): Promise<any> => import(name)                                     // each has an interface of its own

/** The plugin's text without its import, which only a host can answer. */
const moduleOf = (version: number): string => pluginOfSize('sized', version, BYTES, 'export const current = (): number => version')
  .replace(/^import .*$/m, `const block = (reason: string) => ({ kind: 'block', reason })\ntype Context = any`)

const LOADERS: Readonly<Record<string, (folder: string) => Promise<Loader>>> = {
  'import(?v=), of JavaScript': async folder => {
    const file = join(folder, 'plain.mjs'), url = pathToFileURL(file).href
    let count = 0
    return { prepare: version => { writeFileSync(file, transformSync('plain.ts', moduleOf(version)).code) }, load: () => installed(`${url}?v=${++count}`) }
  },
  jiti: async folder => {
    const { createJiti } = await installed('jiti'), jiti = createJiti(folder, { moduleCache: false, fsCache: false })
    return typescript(folder, 'jiti', file => jiti.import(file))
  },
  tsx: async folder => {
    const { tsImport } = await installed('tsx/esm/api')
    return typescript(folder, 'tsx', file => tsImport(file, pathToFileURL(folder).href))
  },
  "Vite's module runner": async folder => {
    const { createServer, createServerModuleRunner } = await installed('vite')
    const server = await createServer({ root: folder, configFile: false, logLevel: 'silent', appType: 'custom', server: { middlewareMode: true, hmr: false, ws: false, watch: null }, optimizeDeps: { noDiscovery: true } })
    const runner = createServerModuleRunner(server.environments.ssr, { hmr: false })
    return typescript(folder, 'vite', file => {
      server.environments.ssr.moduleGraph.onFileChange(file)
      runner.clearCache()
      return runner.import(file)
    }, async () => {
      await runner.close()
      await server.close()
    })
  },
  'a reload here': async () => {
    const running = await startApp({ files: { 'plugins/sized.ts': pluginOfSize('sized', 0, BYTES) }, config: 'plugins: [sized]\n', watch: false })
    return {
      prepare: version => { running.write('plugins/sized.ts', pluginOfSize('sized', version, BYTES)) },
      load: async () => {
        await running.app.reload(['sized'])
        return { current: () => (globalThis as { hxVersions?: Record<string, number> }).hxVersions?.['sized'] ?? Number.NaN }
      },
      close: () => running.close(),
    }
  },
}
function typescript(folder: string, name: string, load: (file: string) => Promise<Versioned>, close?: () => Promise<void>): Loader {
  const file = join(folder, `${name}.ts`)
  return { prepare: version => { writeFileSync(file, moduleOf(version)) }, load: () => load(file), ...close && { close } }
}

export async function benchLoaders(): Promise<Row[]> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hx-bench-loaders-'))), loaders = new Map<string, Loader>()
  try {
    for (const [name, make] of Object.entries(LOADERS)) {
      try { loaders.set(name, await make(folder)) } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
        console.error(`${name} is not installed and left out`)
      }
    }
    const samples = new Map<string, number[]>([...loaders.keys()].map(name => [name, []]))
    for (let version = 1; version <= ROUNDS + WARM_UP; version++) for (const [name, loader] of loaders) {
      loader.prepare(version)
      const begin = performance.now(), { current } = await loader.load(), ms = performance.now() - begin
      if (current() !== version) throw new Error(`${name} has version ${current()}, not ${version}`)
      if (version > WARM_UP) samples.get(name)!.push(ms)
    }
    const [first, ...others] = [...samples], base = row(first![0], 'ms', first![1])
    return [base, ...others.map(([name, all]) => row(name, 'ms', all, base))]
  } finally {
    for (const loader of loaders.values()) await loader.close?.()
    rmSync(folder, { recursive: true, force: true })
  }
}
