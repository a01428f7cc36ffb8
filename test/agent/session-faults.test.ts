import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, closeSync, existsSync, fstatSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkPairs, Transcript } from '../../core/agent/request.js'
import { disk, SessionFile, type Disk } from '../../core/agent/session-file.js'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { compile, start } from '../support/process.js'
import { calls, header, result, says, turnEnd, turnStart } from './session-store.contract.js'

let folder: string, store: FileSessionStore
beforeEach(() => { folder = mkdtempSync(join(tmpdir(), 'hx-sessions-')); store = new FileSessionStore({ folder }) })
afterEach(() => { rmSync(folder, { recursive: true }) })

const file = (id: string) => join(folder, `${id}.jsonl`)
const failure = (code: string) => Object.assign(new Error(`${code}: made to fail`), { code })

/** A session with a few turns; its text, to be damaged. */
async function written(id: string, turns = 3): Promise<string> {
  const writer = await store.create(header(id))
  for (let turn = 1; turn <= turns; turn++) {
    writer.append(turnStart(turn))
    writer.append(says(`ask ${turn} ü\u2028`, { turn }))
    writer.append({ ...calls('a', 'b'), turn } as never)
    writer.append(result('a', 'ok', turn))
    writer.append(result('b', 'ok', turn))
    writer.append(turnEnd(turn))
  }
  await writer.close()
  return readFileSync(file(id), 'utf8')
}
async function reopened(id: string) {
  const writer = await store.open(id)
  const events = [...writer.events]
  await writer.close()
  return events
}

describe('a torn tail', () => {
  it('is cut when the session is opened for writing, wherever it was torn in the last three records, and the rest stays', async () => {
    const bytes = Buffer.from(await written('s', 2)), lines = bytes.toString().trimEnd().split('\n')
    const from = Buffer.byteLength(`${lines.slice(0, -3).join('\n')}\n`)
    for (let cut = from; cut <= bytes.length; cut++) {
      writeFileSync(file('s'), bytes.subarray(0, cut))
      const whole = bytes.subarray(0, cut).toString().split('\n').filter(line => lines.includes(line)).length
      const torn = cut - Buffer.byteLength(lines.slice(0, whole).map(line => `${line}\n`).join(''))
      const before = await store.read('s')
      expect(before.events, `cut at ${cut}`).toHaveLength(whole)
      expect(readFileSync(file('s')).length, 'reading changes nothing').toBe(cut)
      const events = await reopened('s')
      expect(events.slice(0, whole)).toEqual(lines.slice(0, whole).map(line => JSON.parse(line)))
      const repaired = readFileSync(file('s'), 'utf8')
      expect(repaired.endsWith('\n')).toBe(true)
      expect((await store.read('s')).problems).toEqual([])
      expect(repaired.includes(`${torn} bytes of an unfinished record were cut`)).toBe(torn > 0)
      expect(checkPairs(new Transcript(events).messages())).toBeUndefined()
      expect(events.findLast(event => event.type !== 'warning')).toMatchObject({ type: 'turn-end' })
    }
  }, 60_000)

  it('does not swallow what is written next', async () => {
    const text = await written('s')
    writeFileSync(file('s'), text.slice(0, -40))
    for (const content of ['first', 'second']) {
      const writer = await store.open('s')
      writer.append(says(content))
      await writer.close()
    }
    expect((await store.read('s')).events.filter(event => event.type === 'message').slice(-2)).toMatchObject([{ content: [{ text: 'first' }] }, { content: [{ text: 'second' }] }])
  })
})

describe('damage in the middle', () => {
  it('costs only the damaged lines, which are kept aside: 500 random damages', async () => {
    const text = await written('s', 4), lines = text.trimEnd().split('\n')
    const random = generator(20_261_130)
    for (let round = 0; round < 500; round++) {
      const which = 1 + Math.floor(random() * (lines.length - 1)), line = Buffer.from(lines[which]!)
      const ways = [
        () => { line[Math.floor(random() * line.length)] = Math.floor(random() * 256) },
        () => { line.fill(0, Math.floor(random() * line.length)) },
        () => { line[0] = 0xff },
        () => { line.write('null'.padEnd(line.length)) },
        () => { line.write('{"seq":3}'.padEnd(line.length)) },
      ]
      ways[round % ways.length]!()
      writeFileSync(file('s'), Buffer.concat(lines.map((good, index) => Buffer.concat([index === which ? line : Buffer.from(good), Buffer.from('\n')]))))
      rmSync(join(folder, 's.damaged'), { force: true })
      const { events, problems } = await store.read('s')
      expect(lines.length - events.length, `round ${round}`).toBeLessThanOrEqual(2)                  // a newline made by the damage leaves two bad halves of one line
      const after = await reopened('s')
      expect(after.filter(event => event.type !== 'warning').slice(0, events.length)).toEqual(events)
      expect(existsSync(join(folder, 's.damaged'))).toBe(events.length < lines.length)
      if (events.length < lines.length) {
        expect(problems[0]?.line).toBe(which + 1)
        expect(readFileSync(join(folder, 's.damaged')).toString('latin1').replaceAll('\n', '')).toBe(line.toString('latin1').replaceAll('\n', ''))
        expect(after).toContainEqual(expect.objectContaining({ type: 'warning', message: expect.stringContaining('set aside in "s.damaged"') }))
      }
      expect((await store.read('s')).problems.every(({ message }) => message.includes('missing'))).toBe(true)
    }
  }, 60_000)

  it('takes a record out of order for the bad one, not those behind it', async () => {
    const lines = (await written('s')).trimEnd().split('\n')
    const seqs = async (change: (lines: string[]) => string[]) => {
      writeFileSync(file('s'), `${change([...lines]).join('\n')}\n`)
      return (await store.read('s')).events.map(event => event.seq)
    }
    const all = lines.map((_, index) => index + 1), without = (...gone: number[]) => all.filter(seq => !gone.includes(seq))
    expect(await seqs(list => list.with(4, list[4]!.replace('"seq":5', '"seq":9005')))).toEqual(without(5))
    expect(await seqs(list => list.with(4, list[4]!.replace('"seq":5', '"seq":2')))).toEqual(without(5))
    expect(await seqs(list => list.toSpliced(5, 0, list[4]!))).toEqual(all)
    expect(await seqs(list => list.toSpliced(5, 2))).toEqual(without(6, 7))
    expect((await store.read('s')).problems).toEqual([{ line: 6, message: 'events 6 to 7 are missing before this one' }])
  })

  it('goes on behind a gap with the next number', async () => {
    const lines = (await written('s')).trimEnd().split('\n')
    writeFileSync(file('s'), `${lines.toSpliced(5, 2).join('\n')}\n`)
    const writer = await store.open('s')
    expect(writer.append(says('next')).seq).toBe(lines.length + 1)
    await writer.close()
  })

  it('makes a session unreadable only when its first line is lost, and says so', async () => {
    const text = await written('s')
    writeFileSync(file('s'), text.replace('"type":"session"', '"type":"sess'))
    await expect(store.read('s')).rejects.toMatchObject({ code: 'session_damaged', message: expect.stringContaining('first line') })
    await expect(store.open('s')).rejects.toMatchObject({ code: 'session_damaged' })
    await expect(store.open('s')).rejects.toMatchObject({ code: 'session_damaged' })                 // the lock was let go
  })

  it('adds to what was set aside before', async () => {
    const lines = (await written('s')).trimEnd().split('\n')
    for (const line of ['bad one', 'bad two']) {
      writeFileSync(file('s'), `${lines.toSpliced(3, 0, line).join('\n')}\n`)
      await reopened('s')
    }
    expect(readFileSync(join(folder, 's.damaged'), 'utf8')).toBe('bad one\nbad two\n')
  })
})

describe('large records', () => {
  it('stand beside the log, which stays small', async () => {
    const writer = await store.create(header('s'))
    writer.append(says('x'.repeat(256 * 1024)))
    await writer.close()
    expect(statSync(file('s')).size).toBeLessThan(1000)
    expect(readdirSync(join(folder, 's', 'records'))).toEqual(['2.json'])
    expect(statSync(join(folder, 's', 'records', '2.json')).mode & 0o777).toBe(0o600)
  })
  it('are a bad line when their file is gone, or when the line names another file', async () => {
    const writer = await store.create(header('s'))
    writer.append(says('x'.repeat(256 * 1024)))
    writer.append(says('small'))
    await writer.close()
    const text = readFileSync(file('s'), 'utf8')
    writeFileSync(join(folder, 'secret.json'), '{}')
    writeFileSync(file('s'), text.replace('2.json', '../../secret.json'))
    expect(await store.read('s')).toMatchObject({ events: { length: 2 }, problems: [{ line: 2 }] })
    writeFileSync(file('s'), text)
    rmSync(join(folder, 's', 'records', '2.json'))
    expect(await store.read('s')).toMatchObject({ events: { length: 2 }, problems: [{ line: 2, message: expect.stringContaining('ENOENT') }] })
  })
})

describe('the folder', () => {
  it('is readable by its owner alone, like every file in it', async () => {
    folder = join(folder, 'deep', 'sessions')
    store = new FileSessionStore({ folder })
    await written('s')
    store.outputDir('s')
    appendFileSync(file('s'), 'junk\n')
    await reopened('s')
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o077, name).toBe(0)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    chmodSync(folder, 0o755)
    await written('t')
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  it('may hold anything: what is no session is left out of the list and told once', async () => {
    await written('good')
    mkdirSync(join(folder, 'dir.jsonl'))
    writeFileSync(join(folder, 'empty.jsonl'), '')
    writeFileSync(join(folder, 'zeros.jsonl'), Buffer.alloc(100_000))
    writeFileSync(join(folder, 'text.jsonl'), 'hello\n'.repeat(1000))
    writeFileSync(join(folder, 'future.jsonl'), `${JSON.stringify({ seq: 1, ts: 't', type: 'session', v: 2, id: 'future', cwd: '/' })}\n`)
    writeFileSync(join(folder, 'odd name.jsonl'), 'x')
    writeFileSync(join(folder, 'notes.txt'), 'x')
    symlinkSync('/etc/passwd', join(folder, 'link.jsonl'))
    execFileSync('mkfifo', [join(folder, 'pipe.jsonl')])
    const told: string[] = []
    store = new FileSessionStore({ folder, report: message => told.push(message) })
    for (let i = 0; i < 2; i++) expect((await store.list()).map(({ id }) => id)).toEqual(['good'])
    expect(told.map(line => /\/([^/"]+)\.jsonl/.exec(line)?.[1]).sort()).toEqual(['dir', 'empty', 'future', 'link', 'odd name', 'pipe', 'text', 'zeros'])
    await expect(store.read('future')).rejects.toMatchObject({ code: 'session_damaged', message: expect.stringContaining('has format 2, this hx reads format 1') })
    for (const id of ['dir', 'link', 'pipe']) await expect(store.open(id)).rejects.toMatchObject({ code: 'session_damaged', message: expect.stringContaining('is not a file') })
  })

  it('need not exist to be listed', async () => {
    expect(await new FileSessionStore({ folder: join(folder, 'none') }).list()).toEqual([])
  })
  it('says what is wrong when it can not be made', async () => {
    writeFileSync(join(folder, 'file'), '')
    await expect(new FileSessionStore({ folder: join(folder, 'file', 'sessions') }).create(header())).rejects.toMatchObject({ code: 'storage_failed', message: expect.stringContaining('can not be used') })
  })

  it('lists a thousand sessions in a small multiple of the time that reading their two ends takes', async () => {
    const text = await written('s', 20)
    for (let i = 0; i < 1000; i++) writeFileSync(file(`s${i}`), text.replace('"id":"s"', `"id":"s${i}"`))
    const ends = () => {
      const buffer = Buffer.alloc(4096)
      for (let i = 0; i < 1000; i++) {
        const fd = openSync(file(`s${i}`), 'r'), { size } = fstatSync(fd)
        for (const from of [0, size - 4096]) { readSync(fd, buffer, 0, 4096, from); JSON.parse(buffer.toString('utf8').split('\n')[1]!) }
        closeSync(fd)
      }
    }
    const ratios: number[] = []
    for (let i = 0; i < 5; i++) {
      const start = performance.now()
      ends()
      const between = performance.now()
      expect(await store.list()).toHaveLength(1001)
      ratios.push((performance.now() - between) / (between - start))
    }
    expect(Math.min(...ratios)).toBeLessThan(20)                                                   // about 2 to 4
  })
})

describe('a disk that fails', () => {
  /** A disk on which one call of a kind fails, the nth. */
  function failing(kind: keyof Disk, nth: number, fault: (args: Parameters<Disk['write']>) => number = () => { throw failure('ENOSPC') }): Disk & { heal(): void } {
    let count = 0, healthy = false
    const watched = { ...disk, heal: () => { healthy = true } }
    const call = disk[kind] as (...args: unknown[]) => unknown
    watched[kind] = ((...args: unknown[]) => {
      if (healthy || ++count < nth) return call(...args)
      if (kind === 'sync') return Promise.reject(failure('EIO'))
      return fault(args as never)
    }) as never
    return watched
  }

  it('takes in nothing of an event that does not fit, refuses it with a sentence, and goes on when there is space', async () => {
    for (let nth = 2; nth < 12; nth++) {
      const calls = failing('write', nth, ([fd, data, offset, length, position]) => {
        if (length < 100) throw failure('ENOSPC')
        return disk.write(fd, data, offset, Math.ceil(length / 2), position)                       // first a short write without error, as a full disk does
      })
      store = new FileSessionStore({ folder, disk: calls })
      const id = `full-${nth}`, writer = await store.create(header(id)).catch(() => undefined)
      if (!writer) { expect(existsSync(file(id))).toBe(false); continue }
      let refused = 0
      for (let i = 0; i < 20; i++) {
        try { writer.append(says(`event ${i} ${'x'.repeat(200)}`)) } catch (error) {
          refused++
          expect(error).toMatchObject({ code: 'storage_failed', message: expect.stringContaining('ENOSPC') })
        }
        if (i === 15) calls.heal()
      }
      expect(refused).toBeGreaterThan(0)
      expect(writer.events.map(event => event.seq)).toEqual(writer.events.map((_, index) => index + 1))
      await writer.close()
      expect(await store.read(id)).toEqual({ events: writer.events, problems: [] })
    }
  })

  it('stays whole also when the rollback fails at first', async () => {
    let broken = true
    store = new FileSessionStore({ folder, disk: {
      ...disk,
      write: (fd, data, offset, length, position) => { if (!broken || position === 0) return disk.write(fd, data, offset, length, position); disk.write(fd, data, offset, 20, position); throw failure('EIO') },
      truncate: (fd, size) => { if (broken) throw failure('EIO'); disk.truncate(fd, size) },
    } })
    const writer = await store.create(header('s'))
    for (let i = 0; i < 3; i++) expect(() => writer.append(says('lost'))).toThrow(/EIO/)
    expect((await store.read('s')).events).toHaveLength(1)
    broken = false
    writer.append(says('k'))
    await writer.close()
    expect(await store.read('s')).toMatchObject({ events: { length: 2 }, problems: [] })
  })

  it('acknowledges nothing that was not synced: the nth sync fails, n = 1 to 50', async () => {
    for (let nth = 1; nth <= 50; nth++) {
      const calls = failing('sync', nth)
      store = new FileSessionStore({ folder, disk: calls })
      const id = `sync-${nth}`, writer = await store.create(header(id))
      let acknowledged = 0
      const failed = await (async () => {
        for (let i = 0; i < 60; i++) { writer.append(says(`${i}`)); await writer.commit(); acknowledged++ }
      })().catch((error: unknown) => error)
      expect(acknowledged).toBe(nth - 1)
      expect(failed).toMatchObject({ code: 'storage_failed', message: expect.stringContaining('open the session again') })
      expect(() => writer.append(says('more'))).toThrow(/did not confirm/)
      await writer.close()
      const again = await new FileSessionStore({ folder }).open(id)
      expect(again.events.length).toBeGreaterThan(acknowledged)
      await again.close()
    }
  })

  it('acknowledges nothing of a new session before its name is on the disk', async () => {
    const order: string[] = [], options = { durability: 'commit' as const, disk, now: () => new Date() }
    const made = (id: string, named: Promise<void>) => new SessionFile({ id, fd: openSync(file(id), 'w+'), size: 0, events: [], lock: { release: async () => {} }, records: folder, name: () => named }, options)
    let name!: () => void
    const writer = made('s', new Promise<void>(resolve => { name = () => { order.push('named'); resolve() } }))
    writer.append(says('one'))
    const committed = writer.commit().then(() => { order.push('committed') })
    setTimeout(name, 50)                                                                            // long after the sync of the file
    await committed
    expect(order).toEqual(['named', 'committed'])
    await writer.close()
    const nameless = made('n', Promise.reject(failure('EIO')))
    nameless.append(says('one'))
    await expect(nameless.commit()).rejects.toThrow('EIO')
    await expect(nameless.commit()).rejects.toThrow('EIO')
    await expect(nameless.close()).rejects.toThrow('EIO')
  })

  it('fails every commit that waited for the sync', async () => {
    store = new FileSessionStore({ folder, disk: failing('sync', 1) })
    const writer = await store.create(header('s'))
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => writer.commit()))
    expect(results.map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
    await writer.close()
  })

  it('fails an append at once with durability always', async () => {
    store = new FileSessionStore({ folder, durability: 'always', disk: failing('syncNow', 3) })
    const writer = await store.create(header('s'))
    writer.append(says('one'))
    expect(() => writer.append(says('two'))).toThrow(/did not confirm/)
    expect(writer.events).toHaveLength(2)
    await writer.close()
  })

  it('leaves a damaged log as it was when the repair does not fit', async () => {
    const text = await written('s'), damaged = text.replace('"type":"turn-start"', '"type":turn-start')
    writeFileSync(file('s'), damaged)
    for (const nth of [1, 2]) {
      store = new FileSessionStore({ folder, disk: failing('write', nth) })
      await expect(store.open('s')).rejects.toMatchObject({ code: 'storage_failed' })
      expect(readFileSync(file('s'), 'utf8')).toBe(damaged)
    }
    store = new FileSessionStore({ folder })
    expect((await reopened('s')).length).toBeGreaterThan(10)
  })

  it.runIf(process.platform === 'linux')('is survived by a real process at a real limit, which goes on when the limit is lifted', async () => {
    const program = await compile('full-disk')
    const { line, send, kill } = start('bash', ['-c', `ulimit -S -f 64; exec "${process.execPath}" "${program}" "${folder}"`])
    const [, code, kept, pid] = (await line())!.split(' ')
    expect(code).toBe('storage_failed')
    expect((await store.read('full'))).toMatchObject({ problems: [], events: { length: Number(kept) + 1 } })
    execFileSync('prlimit', ['--pid', pid!, '--fsize=unlimited'])
    send('go')
    expect(await line()).toBe('done')
    expect((await store.read('full')).events.at(-1)).toMatchObject({ content: [{ text: 'after' }] })
    await kill()
  })
})

/** HX_KILLS=200 for a long run. */
const ROUNDS = Number(process.env['HX_KILLS'] ?? 12)

describe('a writer that is killed', () => {
  it('holds its session until then, and loses no acknowledged event: kill -9 under load', async () => {
    const program = await compile('session-writer'), random = generator(1)
    let acknowledged = 0, id = ''
    for (let round = 0; round < ROUNDS; round++) {
      if (round % 20 === 0) { id = `killed-${round}`; acknowledged = 0 }
      const writer = start(process.execPath, [program, folder, id, round % 2 ? 'commit' : 'none'])
      expect(await writer.line()).toMatch(/^ready/)
      if (round % 10 === 0) await expect(store.open(id)).rejects.toMatchObject({ code: 'session_busy' })
      const enough = acknowledged + Math.floor(random() * 150)
      while (acknowledged < enough) acknowledged = Number((await writer.line())!.split(' ')[1])
      const gone = writer.kill()
      for (let line = await writer.line(); line !== undefined; line = await writer.line()) acknowledged = Number(line.split(' ')[1])
      await gone
      const { events, problems } = await store.read(id)
      expect(events.map(event => event.seq)).toEqual(events.map((_, index) => index + 1))
      expect(events.length).toBeGreaterThanOrEqual(acknowledged)
      expect(problems.every(({ message }) => message.includes('unfinished'))).toBe(true)
    }
    const events = await reopened(id)
    expect(events.length).toBeGreaterThanOrEqual(acknowledged)
    expect((await store.read(id)).problems).toEqual([])
  }, 30_000 + ROUNDS * 2000)
})

/** The same numbers each time (mulberry32). */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
