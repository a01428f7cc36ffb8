import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Io } from '../../core/cli/io.js'
import { terminalApprover } from '../../core/cli/prompt.js'
import { plain } from '../../core/cli/terminal.js'
import { until } from '../support/hx.js'

/** A person at a terminal who presses these keys, each time a question stands there. */
function asked(...keys: readonly string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} }), stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 80 })
  let shown = ''
  const left = [...keys]
  stderr.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    if (!/ > (\u001b\[\d+G)?$/.test(shown)) return
    shown = ''
    const key = left.shift()
    if (key !== undefined) setImmediate(() => { stdin.write(key) })
  })
  const controller = new AbortController()
  const answer = terminalApprover({ stdin, stderr, paintNote: plain } as unknown as Io, { status: async () => { throw new Error('nobody asks') } })({ session: 's', turn: 1, call: { id: 'c1', name: 'bash', arguments: { command: 'rm x' } }, reason: 'rm', plugin: 'permission', signal: controller.signal })
  return { answer, controller }
}

describe('a question to a person', () => {
  it.each<[string, readonly string[], unknown]>([
    ['yes', ['y\r'], { answer: 'once' }],
    ['yes for the session', ['s\r'], { answer: 'session' }],
    ['no with a reason in the same line', ['n use trash\r'], { answer: 'denied', note: 'use trash' }],
    ['no, then the reason', ['n\r', 'because\r'], { answer: 'denied', note: 'because' }],
    ['nothing, twice', ['\r', '\r'], { answer: 'denied' }],
    ['something else first', ['maybe\r', 'why?\r', 'y\r'], { answer: 'once' }],
    ['Ctrl-D', ['\u0004'], { answer: 'denied' }],
    ['no, then Ctrl-D', ['n\r', '\u0004'], { answer: 'denied' }],
  ])('takes %s', async (_, keys, answer) => { expect(await asked(...keys).answer).toEqual(answer) })

  it('lets Ctrl-C stop the turn instead of counting as an answer', async () => {
    let stopped = false
    const onInterrupt = () => { stopped = true }
    process.once('SIGINT', onInterrupt)
    onTestFinished(() => { process.off('SIGINT', onInterrupt) })
    const { answer, controller } = asked('\u0003')
    await until(() => stopped)
    controller.abort()
    expect(await answer).toBeUndefined()
  })
})
