import { describe, expect, it, onTestFinished } from 'vitest'
import { runAs } from '../../core/kernel/async-context.js'
import { containEscapes } from '../../core/kernel/escapes.js'
import { Log, type LogRecord } from '../../core/kernel/log.js'

/** Contains escapes for one test. `threw` is what Node calls when nobody caught: here by hand, since the runner listens too. */
function contained() {
  const fatal: unknown[] = [], stopped: string[] = [], lines: LogRecord[] = [], log = new Log()
  log.sink(record => { lines.push(record) })
  const { release, strikes } = containEscapes({ log, fatal: error => { fatal.push(error) }, ownerOf: stack => stack.includes('/plugins/known.ts') ? 'known' : undefined, quarantine: async (id, cause) => { stopped.push(`${id}: ${cause}`) } })
  onTestFinished(release)
  const threw = process.listeners('uncaughtException').at(-1)! as (error: unknown) => void
  return { fatal, stopped, lines, release, strikes, threw }
}
const owner = { id: 'mine', row: 0, generation: 1, stage: 'live' as const }
const from = (file: string) => Object.assign(new Error('boom'), { stack: `Error: boom\n    at tick (${file}:3:7)` })

describe('an error that escaped', () => {
  it('is laid at the door of whoever ran, else of whose file stands in its stack, else it is fatal', () => {
    const { threw, lines, fatal } = contained()
    runAs(owner, () => { threw(from('/elsewhere.ts')) })
    threw(from('/plugins/known.ts'))
    threw(from('/nobody.ts'))
    threw('nobody either')
    expect(lines.map(({ plugin, message }) => [plugin, message])).toEqual([
      ['mine', 'plugin "mine" threw outside of any call: boom (/elsewhere.ts:3:7)'], ['known', 'plugin "known" threw outside of any call: boom (/plugins/known.ts:3:7)'],
    ])
    expect(fatal).toEqual([expect.objectContaining({ message: 'boom' }), 'nobody either'])
  })
  it('for the third time within five minutes stops its plugin, once, and nobody else', async () => {
    const { threw, stopped, strikes } = contained()
    for (let i = 0; i < 2; i++) threw(from('/plugins/known.ts'))
    expect([strikes('known'), strikes('mine')]).toEqual([2, 0])
    for (let i = 0; i < 5; i++) runAs(owner, () => { threw(new Error('tick')) })
    expect(stopped).toEqual([expect.stringMatching(/^mine: it threw 3 times outside of any call; /)])
    await new Promise(done => { setImmediate(done) })
    for (let i = 0; i < 3; i++) runAs(owner, () => { threw(new Error('tick')) })
    expect(stopped).toHaveLength(2)                            // it came back and does it again
  })
})

describe('the process', () => {
  it('is ended by the host alone, and its stdout is the host\'s', () => {
    const { release } = contained()
    expect(() => runAs(owner, () => { process.exit(3) })).toThrow('plugin "mine" called process.exit(3), which would end the host and every other plugin; throw an error instead')
    const before = process.listeners('SIGTERM')
    for (const [call, name] of [[() => process.abort(), 'abort\\(\\)'], [() => process.kill(process.pid, 'SIGTERM'), 'kill'], [() => process.kill(-process.pid), 'kill'], [() => process.chdir('/'), 'chdir\\("/"\\)'], [() => process.umask(0), 'umask\\(0\\)'], [() => process.removeAllListeners(), 'removeAllListeners'], [() => process.removeAllListeners('SIGTERM'), 'removeAllListeners']] as const) {
      expect(() => runAs<unknown>(owner, call)).toThrow(new RegExp(`^plugin "mine" called process\\.${name}.*which would .* the host and every other plugin; `))
    }
    runAs(owner, () => { process.umask(); process.kill(process.pid, 0) })                     // questions harm nobody
    expect(process.listeners('SIGTERM')).toEqual(before)
    const { write } = process.stderr, said: unknown[] = []
    process.stderr.write = text => { said.push(text); return true }
    try { runAs(owner, () => { process.stdout.write('noise') }) } finally { process.stderr.write = write }
    expect(said).toEqual(['noise'])
    release()
  })
  it('is given back as it was', () => {
    const { exit, abort, kill, chdir, umask, removeAllListeners } = process, { write } = process.stdout, listeners = () => [process.listenerCount('uncaughtException'), process.listenerCount('unhandledRejection')]
    const before = listeners()
    contained().release()
    expect([process.exit, process.stdout.write, listeners()]).toEqual([exit, write, before])
    expect([process.abort, process.kill, process.chdir, process.umask, process.removeAllListeners]).toEqual([abort, kill, chdir, umask, removeAllListeners])
  })
})
