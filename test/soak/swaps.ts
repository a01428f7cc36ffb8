/** A process that swaps a folder for a link that leads outside, as fast as it can, against tools that read and write through it for five seconds: nothing outside may be read or made. */
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Workspace } from '../../core/agent/workspace.js'
import type { SessionView } from '../../core/agent/vocabulary.js'
import { start } from '../support/process.js'
import type { Soak } from './soak.js'

const FOR_MS = 5000

export const soak: Soak = async ({ say, check }) => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'hx-swaps-'))), root = join(base, 'ws'), outside = join(base, 'outside')
  mkdirSync(root)
  mkdirSync(join(outside, 'inner'), { recursive: true })
  writeFileSync(join(outside, 'inner', 'secret.txt'), 'SECRET')
  const before = readdirSync(outside, { recursive: true }).sort().join()
  const session: SessionView = { id: 's', cwd: root, depth: 0, messages: [] }, workspace = new Workspace({ protectedPaths: () => [], home: join(base, 'home') })
  const swapper = start(process.execPath, [fileURLToPath(new URL('../../test/support/processes/swapper.mjs', import.meta.url)), join(root, 'sub'), outside])
  await swapper.line()
  const seen = { reads: 0, writes: 0, refused: 0, escapes: 0 }
  for (let i = 0, end = performance.now() + FOR_MS; performance.now() < end; i++) {
    await Promise.all([
      workspace.readFile(session, 'sub/inner/secret.txt').then(data => { seen.reads++; if (data.toString() !== 'inside') seen.escapes++ }, () => { seen.refused++ }),
      ...[`sub/new-${i}`, `sub/inner/new-${i}`, `sub/inner/deep-${i}/new`].map(path => workspace.writeFile(session, path, 'x').then(() => { seen.writes++ }, () => { seen.refused++ })),
    ])
  }
  await swapper.kill()
  const after = readdirSync(outside, { recursive: true }).sort().join()
  rmSync(base, { recursive: true, force: true })
  say(`${seen.reads} reads and ${seen.writes} writes went through, ${seen.refused} were refused, ${seen.escapes} escaped`)
  check(seen.escapes === 0 && after === before, `something outside was read or made: ${after}`)
  check(Math.min(seen.reads, seen.writes, seen.refused) > 0, 'the race was none: one of the outcomes never came')
}
