/** A folder of its own for one test, gone afterwards. */
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'

export interface Folder {
  readonly path: string
  /** The absolute path of a name in it. */
  at(name: string): string
  /** Writes a file and the folders above it; returns its path. */
  write(name: string, text: string): string
}

export function folder(files: Readonly<Record<string, string>> = {}): Folder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'hx-test-')))
  onTestFinished(() => rm(path, { recursive: true, force: true, maxRetries: 10 }))
  const made: Folder = {
    path,
    at: name => join(path, name),
    write: (name, text) => {
      const file = join(path, name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
      return file
    },
  }
  for (const [name, text] of Object.entries(files)) made.write(name, text)
  return made
}
