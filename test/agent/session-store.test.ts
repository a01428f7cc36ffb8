import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { MemorySessionStore } from '../../core/agent/session-store-memory.js'
import { header, sessionStoreContract } from './session-store.contract.js'

for (const durability of ['none', 'commit', 'always'] as const) {
  sessionStoreContract(`files, durability ${durability}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'hx-sessions-'))
    return { store: new FileSessionStore({ folder, durability }), dispose: () => { rmSync(folder, { recursive: true }) } }
  })
}
sessionStoreContract('files that a list knows from its index', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hx-sessions-'))
  writeFileSync(join(folder, 'index.json'), 'none')                // made anew by the first list
  return { store: new FileSessionStore({ folder, now: () => new Date(Date.now() + 60_000) }), dispose: () => { rmSync(folder, { recursive: true }) } }
})
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

describe('sessions in memory', () => {
  it('that are closed are kept up to 256, the last ones, so that a daemon does not keep those of months', async () => {
    const store = new MemorySessionStore()
    for (let n = 0; n < 300; n++) await (await store.create(header(`s-${n}`))).close()
    expect((await store.list()).length).toBe(256)
    await expect(store.read('s-0')).rejects.toMatchObject({ code: 'session_missing' })
    expect((await store.read('s-299')).events).toHaveLength(1)
    store.dispose()
  })
})
