/** Every call of the file system that a session's writer makes fails once, at each of its places, with what a disk answers: nothing that was acknowledged is lost. */
import fs, { appendFileSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { SessionEventBody, SessionWriter } from '../../core/agent/session-events.js'
import type { Disk } from '../../core/agent/session-file.js'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { HarnessError } from '../../core/errors.js'
import { failingFs, type Fault, KINDS } from '../support/failing-fs.js'
import { header, says, turnEnd, turnStart } from './session-store.contract.js'

/** The calls as they are now, shimmed or not: the store's own were taken when it was loaded. */
const disk: Disk = {
  write: (...args) => fs.writeSync(...args), truncate: (...args) => { fs.ftruncateSync(...args) },
  sync: fd => promisify(fs.fdatasync)(fd), syncNow: fd => { fs.fdatasyncSync(fd) },
}
/** Memory where there is a disk of it: thousands of syncs are made. */
const SCRATCH = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
const LARGE = 'x'.repeat(256 * 1024)
const textOf = (event: object): string => JSON.stringify('content' in event ? event.content : event)

/** A session's life while the disk fails: begun, written, a large record, damaged, opened and repaired, written again. Whatever is refused is tried again, by opening the session anew where that is said. */
async function life(folder: string, fault: Fault) {
  const read = readFileSync, write = writeFileSync, add = appendFileSync, remove = rmSync                                     // of the test, never failing
  const store = new FileSessionStore({ folder, disk }), acknowledged: string[] = [], refused: unknown[] = []
  const calls = failingFs(folder, fault)
  /** Tries again as a person would, who makes space in between. */
  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try { return await work() } catch (error) {
      refused.push(error)
      calls.heal()
      return work()
    }
  }
  let writer: SessionWriter
  const put = async (body: SessionEventBody) => {
    try {
      const event = writer.append(body)
      await writer.commit()
      acknowledged.push(textOf(event))
    } catch (error) {
      refused.push(error)
      calls.heal()
      try { await writer.commit() } catch (again) {                                                          // it is over: opened again
        refused.push(again)
        await writer.close().catch((late: unknown) => { refused.push(late) })
        writer = await attempt(() => store.open('s'))
      }
      acknowledged.push(textOf(writer.append(body)))
      await writer.commit()
    }
  }
  try {
    writer = await attempt(() => { remove(join(folder, 's.jsonl'), { force: true }); return store.create(header('s')) })      // one that could be neither made nor taken away keeps its name
    await put(turnStart(1))
    for (let i = 0; i < 12; i++) await put(says(`before ${i}`))
    await put(says(LARGE))
    await put(turnEnd(1))
    await writer.close().catch((error: unknown) => { refused.push(error) })
    const file = join(folder, 's.jsonl'), lines = read(file, 'utf8').trimEnd().split('\n')
    write(file, `${lines.toSpliced(3, 0, 'no line').join('\n')}\n`)
    add(file, '{"seq":99,"ts"')
    writer = await attempt(() => store.open('s'))
    await put(turnStart(2))
    for (let i = 0; i < 12; i++) await put(says(`after ${i}`))
    await put(turnEnd(2))
    await writer.close().catch((error: unknown) => { refused.push(error) })
    return { acknowledged, refused, struck: calls.struck, left: [...calls.open.values()] }
  } finally { calls.restore() }
}

async function check(fault: Fault): Promise<boolean> {
  const folder = mkdtempSync(join(SCRATCH, 'hx-disk-')), shown = `${fault.kind} ${fault.nth} ${fault.code}${fault.stays ? ' and on' : ''}`
  try {
    const { acknowledged, refused, struck, left } = await life(folder, fault)
    for (const error of refused) expect([shown, error instanceof HarnessError && error.code, String(error)]).toEqual([shown, 'storage_failed', expect.stringContaining(fault.code)])
    expect([shown, left]).toEqual([shown, []])
    const store = new FileSessionStore({ folder }), { events, problems } = await store.read('s')
    expect([shown, problems]).toEqual([shown, []])
    expect([shown, events.map(({ seq }) => seq)]).toEqual([shown, events.map((_, index) => index + 1)])
    const kept = events.map(textOf)
    let at = -1
    for (const text of acknowledged) {
      at = kept.indexOf(text, at + 1)
      if (at < 0) expect.fail(`${shown}: lost ${text.slice(0, 60)}`)
    }
    expect([shown, acknowledged.length]).toEqual([shown, 29])
    expect([shown, readdirSync(folder).filter(name => /repair|probe/.test(name))]).toEqual([shown, []])
    const again = await store.open('s')
    expect(again.append(says('still here')).seq).toBe(events.length + 1)
    await again.close()
    return struck
  } finally { rmSync(folder, { recursive: true, force: true }) }
}

/** Runs it for each n until the life is too short to come to the nth call. */
async function each(most: number, fault: Omit<Fault, 'nth' | 'code'>): Promise<number> {
  let struck = 0
  for (let nth = 1; nth <= most && await check({ ...fault, nth, code: ['ENOSPC', 'EIO', 'EDQUOT'][nth % 3]! }); nth++) struck++
  return struck
}

describe('a disk whose nth call fails', () => {
  for (const kind of KINDS) if (kind !== 'remove') it(`loses nothing that was acknowledged when it is ${kind}, n = 1 to 50`, { timeout: 60_000 }, async () => {
    expect(await each(50, { kind })).toBeGreaterThan(0)
  })
  it('loses nothing that was acknowledged when all calls fail from the nth on, until there is space', { timeout: 120_000 }, async () => {
    expect(await each(Infinity, { kind: 'any', stays: true })).toBeGreaterThan(100)
  })
})
