import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { acquireLock } from '../../core/kernel/lock.js'
import { compile, start, type Started } from '../support/process.js'

let program: string
const started: Started[] = []
beforeAll(async () => { program = await compile('lock-holder') })
afterAll(async () => { await Promise.all(started.map(one => one.kill())) })

/** A process that tries for locks (test/support/processes/lock-holder.ts). */
function holder(): Started & { ask(name: string): Promise<string | undefined> } {
  const process = start(globalThis.process.execPath, [program])
  started.push(process)
  return { ...process, ask: name => { process.send(name); return process.line() } }
}

describe('acquireLock', () => {
  it('gives a name to one holder in a process, and again after it was released', async () => {
    const name = randomUUID()
    const lock = await acquireLock(name)
    expect(lock).toBeDefined()
    expect(await acquireLock(name)).toBeUndefined()
    await lock!.release()
    const again = await acquireLock(name)
    expect(again).toBeDefined()
    await again!.release()
  })

  it('may be released twice, which does not take it from the next holder', async () => {
    const name = randomUUID()
    const first = await acquireLock(name)
    await first!.release()
    const second = await acquireLock(name)
    await first!.release()
    expect(await acquireLock(name)).toBeUndefined()
    await second!.release()
  })

  it('takes any name, however long and odd, and keeps different ones apart', async () => {
    const names = ['', 'a/b', `${randomUUID()}-ü\n\0`, 'x'.repeat(10_000), 'x'.repeat(10_001)]
    const locks = await Promise.all(names.map(name => acquireLock(`${process.pid}-${name}`)))
    expect(locks.every(lock => lock !== undefined)).toBe(true)
    await Promise.all(locks.map(lock => lock!.release()))
  })

  it('refuses what another process holds, and has it back at once after kill -9', async () => {
    const name = randomUUID()
    const { ask, kill } = holder()
    expect(await ask(name)).toBe(`won ${name}`)
    expect(await acquireLock(name)).toBeUndefined()
    await kill()
    const lock = await acquireLock(name)
    expect(lock).toBeDefined()
    await lock!.release()
  })

  it('does not keep a process alive', async () => {
    const { child, ask } = holder()
    await ask(randomUUID())
    const gone = once(child, 'exit')
    child.stdin!.end()
    expect(await gone).toEqual([0, null])
  })

  it('has exactly one winner in each of 100 races of two processes', async () => {
    const one = holder(), two = holder()
    await Promise.all([one.ask('warm-up-1'), two.ask('warm-up-2')])
    for (let race = 0; race < 100; race++) {
      const name = randomUUID()
      const results = await Promise.all([one.ask(name), two.ask(name)])
      expect(results.filter(result => result === `won ${name}`)).toHaveLength(1)
      expect(results.filter(result => result === `lost ${name}`)).toHaveLength(1)
    }
  })

  it('rejects with the error of the system when it is another than "taken"', async () => {
    const limited = start('bash', ['-c', `ulimit -n 24; exec "${process.execPath}" "${program}"`])
    started.push(limited)
    for (let i = 0; i < 40; i++) limited.send(randomUUID())
    let line: string | undefined
    do line = await limited.line(); while (line?.startsWith('won'))
    expect(line).toMatch(/^failed .*EMFILE/)
  })
})
