/**
 * The daemon's log on the disk: appended to line by line, put aside when it has grown, for the owner alone. Knows no record.
 * Writing never throws: where the disk takes nothing, lines are counted, and the loss is told when it takes some again. The file stays open, so that a log is possible when descriptors have run out; one that somebody removed is made anew, since nobody reads what is written into it.
 */
import { closeSync, fstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../kernel/folder.js'

const MAX_BYTES = 10 * 1024 * 1024, FILES = 5

/** The file and those before it, the newest first. */
export const logFiles = (file: string): readonly string[] => [file, ...Array.from({ length: FILES - 1 }, (_, index) => `${file}.${index + 1}`)]

export class LogFile {
  readonly #file: string
  readonly #maxBytes: number
  #fd: number
  #size: number
  #lost = 0

  /** Throws when the file can not be opened. */
  constructor(file: string, maxBytes = MAX_BYTES) {
    this.#file = file
    this.#maxBytes = maxBytes
    this.#fd = openSync(file, 'a', 0o600)
    this.#size = fstatSync(this.#fd).size
  }

  /** `told` makes the line that says how many were lost. */
  write(line: string, told: (lost: number) => string): void {
    try {
      if (this.#lost > 0) {
        this.#append(told(this.#lost))
        this.#lost = 0
      }
      this.#append(line)
    } catch { this.#lost++ }                                 // told with the next line that can be written
  }
  close(): void { closeSync(this.#fd) }

  #append(line: string): void {
    const bytes = Buffer.from(line)
    if (fstatSync(this.#fd).nlink === 0) this.#begin()
    if (this.#size > 0 && this.#size + bytes.length > this.#maxBytes) this.#rotate()
    for (let done = 0; done < bytes.length;) {
      const written = writeSync(this.#fd, bytes, done)
      this.#size += written
      done += written
    }
  }
  /** What can not be put aside now is tried again with the next line; until then the file grows. */
  #rotate(): void {
    const files = logFiles(this.#file)
    try {
      rmSync(files.at(-1)!, { force: true })
      for (let index = files.length - 2; index >= 0; index--) {
        try { renameSync(files[index]!, files[index + 1]!) } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
        }
      }
      this.#begin()
    } catch { /* goes on in the file that is open, wherever its name is now */ }
  }
  #begin(): void {
    makeFolder(dirname(this.#file))
    const fd = openSync(this.#file, 'a', 0o600)
    closeSync(this.#fd)
    this.#fd = fd
    this.#size = fstatSync(fd).size
  }
}
