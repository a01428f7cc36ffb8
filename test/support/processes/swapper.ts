/** Swaps a folder for a link and back, as fast as it can, until it is killed. Arguments: the path, where the link leads. */
import { renameSync, rmSync, symlinkSync } from 'node:fs'

const [path, target] = process.argv.slice(2) as [string, string]
symlinkSync(target, `${path}.link`)
console.log('swapping')
for (;;) {
  move(path, `${path}.folder`)
  move(`${path}.link`, path)
  move(path, `${path}.link`)
  move(`${path}.folder`, path)
}

/** A writer may have made the missing folder anew between two moves; it gives way. */
function move(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch {
    rmSync(to, { recursive: true, force: true })
    renameSync(from, to)
  }
}
