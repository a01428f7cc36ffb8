import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))
const plugins = readdirSync(join(root, 'plugins'), { withFileTypes: true }).flatMap(entry => {
  const file = entry.isDirectory() ? `plugins/${entry.name}/index.ts` : `plugins/${entry.name}`
  return file.endsWith('.ts') && existsSync(join(root, file)) ? [[`plugins/${entry.name.replace(/\.ts$/, '')}`, join(root, file)]] : []
})

/** zod brings its messages in 50 languages, a third of what a start would read; ours are English. */
const englishOnly = {
  name: 'english-only',
  load: (id: string) => /zod\/v4\/locales\/index\.js$/.test(id) ? 'export { default as en } from "./en.js"' : undefined,
}

/**
 * One build: the command, the door for plugins, the kit for tests and each shipped plugin, with what they share in chunks, so that there is one instance of everything.
 * Pure JavaScript is bundled, since reading 200 small files is most of a cold start; native packages and one that looks for its own file stay outside.
 */
export default defineConfig({
  input: { cli: join(root, 'core/cli/hx.ts'), api: join(root, 'core/api.ts'), testing: join(root, 'core/testing.ts'), ...Object.fromEntries(plugins) },
  platform: 'node',
  plugins: [englishOnly],
  external: [/^node:/, 'oxc-transform', 'write-file-atomic', /^@modelcontextprotocol\//],
  resolve: { alias: { 'harnessx/testing': join(root, 'core/testing.ts'), harnessx: join(root, 'core/api.ts') } },
  output: { dir: join(root, 'dist'), format: 'esm', entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js', cleanDir: true, minify: true },
  logLevel: 'warn',
})
