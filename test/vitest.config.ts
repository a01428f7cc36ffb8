import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const core = (file: string) => fileURLToPath(new URL(`../core/${file}`, import.meta.url))

/** Forked processes, because the tests touch real signals, handles and the compilation cache; `gc` is exposed for the leak tests. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  resolve: { alias: [{ find: /^harnessx\/testing$/, replacement: core('testing.ts') }, { find: /^harnessx$/, replacement: core('api.ts') }] },
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    execArgv: ['--expose-gc'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ['default', 'json'],
    outputFile: { json: 'test/report.json' },
  },
})
