/** Swaps a folder for a link and back, as fast as it can, until it is killed. Arguments: the path, where the link leads. Makes both, with `inner` and `inner/secret.txt` in the folder. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'

const [path, target] = process.argv.slice(2)
const link = `${path}.link`, folder = `${path}.folder`

function makeBoth() {
  for (const old of [path, link, folder]) rmSync(old, { recursive: true, force: true })
  mkdirSync(`${path}/inner`, { recursive: true })
  writeFileSync(`${path}/inner/secret.txt`, 'inside')
  symlinkSync(target, link)
}
for (let first = true; ; first = false) {
  try {
    makeBoth()
    if (first) console.log('swapping')
    for (;;) {
      renameSync(path, folder)
      renameSync(link, path)
      renameSync(path, link)
      renameSync(folder, path)
    }
  } catch { /* a writer made the missing folder anew between two moves: begin again */ }
}
