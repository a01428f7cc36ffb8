import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { MemorySessionStore } from '../../core/agent/session-store-memory.js'
import { sessionStoreContract } from './session-store.contract.js'

for (const durability of ['none', 'commit', 'always'] as const) {
  sessionStoreContract(`files, durability ${durability}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'hx-sessions-'))
    return { store: new FileSessionStore({ folder, durability }), dispose: () => { rmSync(folder, { recursive: true }) } }
  })
}
sessionStoreContract('memory', () => {
  const store = new MemorySessionStore()
  return { store, dispose: () => { store.dispose() } }
})

it('takes the outputs of a memory store away with it', async () => {
  const store = new MemorySessionStore()
  const path = store.outputDir('s')
  store.dispose()
  expect(existsSync(path)).toBe(false)
})
