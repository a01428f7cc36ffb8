import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))
const plugins = readdirSync(join(root, 'plugins'), { withFileTypes: true }).flatMap(entry => {
  const file = entry.isDirectory() ? `plugins/${entry.name}/index.ts` : `plugins/${entry.name}`
  return file.endsWith('.ts') && existsSync(join(root, file)) ? [[`plugins/${entry.name.replace(/\.ts$/, '')}`, join(root, file)]] : []
})
/** What others import, and may import from a module. */
const DOORS = ['api', 'testing']

/** Few files: what every command needs, and what every host does, each in one. What a start may do without is imported when it is needed, and stays apart. */
const LATER = 'module-graph|module-record|module-cycles|compile|evaluation|resolve|stack-traces|on-disk|watcher'
const GROUPS = [
  { name: 'base', priority: 2, test: /core\/cli\/(main|connect|troubles|held|question)\.ts$|core\/agent\/vocabulary\.ts$|node_modules\/commander\// },
  { name: 'openai', priority: 2, test: /node_modules\/openai\/|plugins\/model-openai\/(http|headers)\.ts$/ },
  { name: 'yaml', priority: 2, test: /node_modules\/yaml\// },
  { name: 'host', priority: 1, test: new RegExp(`core/(app|api)\\.ts$|core/app/|core/cli/(agent|in-process|admission|own-process)\\.ts$|core/(agent|kernel)/|core/loader/(?!${LATER})|node_modules/(zod|cordis|cosmokit|@cordisjs)/`) },
]

/** zod brings its messages in 50 languages, a third of what a start would read; ours are English. */
const englishOnly: Plugin = {
  name: 'english-only',
  load: id => /zod\/v4\/locales\/index\.js$/.test(id) ? 'export { default as en } from "./en.js"' : undefined,
}
/** Node loads the whole of its `fetch` when one of its classes is named, a sixth of a cold start. The SDK names two, for headers and for bodies that we never send, and a third of Node's streams of the web. */
const withoutFetch: Plugin = {
  name: 'without-fetch',
  transform: (code, id) => /node_modules\/openai\/(client|internal\/headers|internal\/utils\/log)\.mjs$/.test(id)
    ? `import { Headers } from ${JSON.stringify(join(root, 'plugins/model-openai/headers.ts'))}\nclass FormData {}\n${code.replaceAll('globalThis.ReadableStream', 'undefined')}` : undefined,
}
/** commander starts programs for subcommands that are files of their own; we have none. */
const withoutPrograms: Plugin = {
  name: 'without-programs',
  transform: (code, id) => /node_modules\/commander\/lib\/command\.js$/.test(id) ? code.replace("const childProcess = require('node:child_process');", 'const childProcess = undefined;') : undefined,
}
/** V8 keeps a text with a single letter beyond ASCII in twice the memory, and Node reads it many times slower. */
const ascii: Plugin = {
  name: 'ascii',
  generateBundle(_, bundle) {                                // not earlier: minifying writes letters as they are
    for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') chunk.code = chunk.code.replace(/[^\x00-\x7f]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
  },
}
/** What every run needs. Each other module of Node is loaded when something of it is used first: crypto alone is 36 modules, and most runs start no program. So is the YAML library, for a config that is not plain (core/loader/config-plain.ts). */
const AT_ONCE = 'async_hooks|buffer|events|fs|module|os|path|process|timers|url|util'
const whenUsed: Plugin = {
  name: 'when-used',
  generateBundle(_, bundle) {
    const required = new RegExp(`\\brequire\\(([\"'\`](?:node:(?!(?:${AT_ONCE})[\"'\`]).*?|\\./yaml\\.cjs)[\"'\`])\\)`, 'g')
    for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') chunk.code = chunk.code.replace(required, (_, id: string) => `new Proxy({},{get:(o,n)=>(o.all??=${id.includes('node:') ? 'process.getBuiltinModule' : 'require'}(${id}))[n]})`)
  },
}
/** The doors as modules: the names of the CommonJS file behind them, so that there is one instance whoever asks. `build-id` names what was built, for caches of it. */
const doors: Plugin = {
  name: 'doors',
  generateBundle(_, bundle) {
    const id = createHash('sha256')
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== 'chunk') continue
      id.update(`${chunk.fileName}\0${chunk.code}\0`)
      if (!chunk.isEntry || !DOORS.includes(chunk.name)) continue
      const names = chunk.exports.join(', ')
      this.emitFile({ type: 'asset', fileName: `${chunk.name}.js`, source: `import all from './${chunk.fileName}'\nexport const { ${names} } = all\n` })
    }
    this.emitFile({ type: 'asset', fileName: 'build-id', source: id.digest('hex').slice(0, 16) })
  },
}

/**
 * One build: the command, the doors for plugins and tests and each shipped plugin, with what they share in chunks, so that there is one instance of everything.
 * Pure JavaScript is bundled, since reading 200 small files is most of a cold start; native packages and the SDKs of optional plugins stay outside.
 * CommonJS, since Node 20 takes three times as long to load modules, and since it can be kept compiled (core/cli/code-cache.ts).
 */
const build = defineConfig({
  input: { cli: join(root, 'core/cli/hx.ts'), ...Object.fromEntries(DOORS.map(name => [name, join(root, `core/${name}.ts`)])), ...Object.fromEntries(plugins) },
  platform: 'node',
  plugins: [englishOnly, withoutFetch, withoutPrograms, ascii, whenUsed, doors],
  external: [/^node:/, 'oxc-transform', /^@modelcontextprotocol\//],
  resolve: { alias: { 'harnessx/testing': join(root, 'core/testing.ts'), harnessx: join(root, 'core/api.ts'), yaml: join(root, 'node_modules/yaml/browser/dist/index.js') } },
  output: { dir: join(root, 'dist'), format: 'cjs', entryFileNames: '[name].cjs', chunkFileNames: 'chunks/[name].cjs', cleanDir: true, minify: true, codeSplitting: { groups: GROUPS } },
  logLevel: 'warn',
  checks: { ineffectiveDynamicImport: false },               // what one command imports late, another one may need at once
})
/** The thread beside the daemon has a heap of its own, and a small one: nothing but its own code is read into it. */
const watchdog = defineConfig({
  input: { watchdog: join(root, 'core/daemon/watchdog-thread.ts') },
  platform: 'node',
  plugins: [ascii],
  external: [/^node:/],
  output: { dir: join(root, 'dist'), format: 'cjs', entryFileNames: '[name].cjs', cleanDir: false, minify: true, codeSplitting: false },
  logLevel: 'warn',
  checks: { ineffectiveDynamicImport: false },               // what one command imports late, another one may need at once
})
export default [build, watchdog]
