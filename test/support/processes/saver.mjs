/** Saves files as editors and tools do, in a process of its own, so that whoever watches them is alone with its clock. One order a line: {id, how, file, text}; answers `ID NANOSECONDS` when it is done, of the monotonic clock at the beginning of its last step, the one that shows the whole text: nobody can have seen it earlier. */
import { closeSync, openSync, renameSync, rmSync, unlinkSync, writeFileSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const last = step => {
  const now = process.hrtime.bigint()
  step()
  return now
}
function write(file, text) {
  const out = openSync(file, 'w')
  const now = last(() => { writeSync(out, text) })
  closeSync(out)
  return now
}
const HOW = {
  'in place': write,
  'by rename': (file, text) => {
    writeFileSync(`${file}.tmp`, text)
    return last(() => { renameSync(`${file}.tmp`, file) })
  },
  'with a swap file': (file, text) => {
    renameSync(file, `${file}~`)
    const now = write(file, text)
    rmSync(`${file}~`)
    return now
  },
  async 'in chunks'(file, text) {
    const out = openSync(file, 'w'), size = Math.ceil(text.length / 3)
    let now
    for (let at = 0; at < text.length; at += size) {
      if (at > 0) await sleep(8)
      now = last(() => { writeSync(out, text.slice(at, at + size)) })
    }
    closeSync(out)
    return now
  },
  async 'byte by byte'(file, text) {
    const out = openSync(file, 'w')
    let now
    for (const byte of text) {
      now = last(() => { writeSync(out, byte) })
      await sleep(1)
    }
    closeSync(out)
    return now
  },
  async 'deleted and written anew'(file, text) {
    unlinkSync(file)
    await sleep(Math.random() * 40)
    return write(file, text)
  },
}

const answerMs = Number(process.argv[2] ?? 0)
for await (const line of createInterface({ input: process.stdin })) {
  const { id, how, file, text } = JSON.parse(line)
  const now = await HOW[how](file, text)
  if (answerMs > 0) await sleep(answerMs)
  process.stdout.write(`${id} ${now}\n`)
}
