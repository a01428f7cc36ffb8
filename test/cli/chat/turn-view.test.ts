import { describe, expect, it } from 'vitest'
import type { RunEvent } from '../../../core/agent/services.js'
import type { SessionEventBody } from '../../../core/agent/session-events.js'
import { painted } from '../../../core/cli/chat/spans.js'
import { TurnView } from '../../../core/cli/chat/turn-view.js'
import { plain } from '../../../core/cli/terminal.js'

const at = { turn: 1, step: 0 }
let seq = 0
const logged = (body: SessionEventBody): RunEvent => ({ ...body, seq: ++seq, ts: '2026-01-01T00:00:00.000Z' })
const delta = (text: string, more: object = {}): RunEvent => ({ type: 'delta', ...at, kind: 'text', text, attempt: 1, ...more })
const reply = (text: string, more: object = {}): RunEvent => logged({ type: 'message', ...at, role: 'assistant', content: [{ type: 'text', text }], source: { kind: 'model', id: 'm/m' }, ...more })
const intent = (callId: string, args: Record<string, string>): RunEvent => logged({ type: 'tool-intent', ...at, callId, name: 'bash', arguments: args })
const result = (callId: string, content: string, more: object = {}): RunEvent => logged({ type: 'tool-result', ...at, callId, name: 'bash', kind: 'ok', content, isError: false, elapsedMs: 12, ...more })
const end = (more: object = {}): RunEvent => logged({ type: 'turn-end', turn: 1, reason: 'completed', usage: { inputTokens: 10, outputTokens: 2 }, elapsedMs: 1500, stats: { steps: 1, toolCalls: 0, blocked: 0 }, ...more })

function seen(events: readonly RunEvent[], thoughts = false) {
  const view = new TurnView({ width: () => 60, thoughts: () => thoughts, verbose: false }, 0)
  for (const event of events) view.see(event, 0)
  const text = (lines: ReturnType<TurnView['take']>) => lines.map(line => painted(line, plain)).join('\n')
  return { view, said: text(view.take()), live: text(view.live(0)) }
}

describe('a turn in a chat', () => {
  it('is what the log says, whether all, some or none of it was streamed', () => {
    const whole = '# Title\n\nSome words.'
    const said = seen([delta('# Title\n\nSo'), delta('me words.'), reply(whole), end()]).said
    expect(said).toBe('Title\n\nSome words.\n\n1 step · 12 tokens · 1.5 s')
    expect(seen([reply(whole), end()]).said).toBe(said)
    expect(seen([delta('# Ti'), reply(whole), end()]).said).toBe(said)
    expect(seen([delta('# Title\n\nme words.'), reply(whole), end()]).said).toContain('(pieces of this were missed; the whole reply:)\n\nTitle\n\nSome words.')
  })
  it('says that a reply was cut off and asked for again, and keeps the two apart', () => {
    expect(seen([delta('half of it'), delta('whole', { attempt: 2 }), reply('whole'), end()]).said).toContain('half of it\n\n  (cut off; asked again)\n\nwhole')
  })
  it('shows a call while it runs and then its outcome, with the arguments of one that was refused', () => {
    expect(seen([intent('a', { command: 'npm test' })]).live).toMatch(/^. \$ npm test {2}0 ms/)
    expect(seen([intent('a', { command: 'npm test' }), result('a', 'one\ntwo\n')]).said).toBe('✓ $ npm test  12 ms  2 lines')
    const refused = [reply('', { toolCalls: [{ id: 'b', name: 'bash', arguments: '{"command":"sudo ls"}' }] }), result('b', 'blocked by plugin "permission": no', { kind: 'blocked', plugin: 'permission' })]
    expect(seen(refused).said).toBe('✗ $ sudo ls\n  blocked by plugin "permission": no')
  })
  it('gives every call an end, also when the turn is stopped or is not heard of any more', () => {
    expect(seen([intent('a', { command: 'sleep 9' }), end({ reason: 'aborted', message: 'stopped by the user' })]).said).toMatch(/^✗ \$ sleep 9 {2}interrupted\naborted: stopped by the user/)
    const { view } = seen([delta('and then'), intent('a', { command: 'sleep 9' })])
    view.close()
    expect(view.take().map(line => painted(line, plain)).join('\n')).toBe('and then\n\n✗ $ sleep 9  interrupted')
    expect(view.live(0)).toEqual([])
  })
  it('says how long a call ran that was cut off, for which the log has no time', () => {
    const view = new TurnView({ width: () => 60, thoughts: () => false, verbose: false }, 0)
    view.see(intent('a', { command: 'sleep 9' }), 0)
    view.see(result('a', 'interrupted: it may have run or not', { kind: 'interrupted', elapsedMs: 0 }), 2600)
    expect(view.take().map(line => painted(line, plain)).join('\n')).toBe('✗ $ sleep 9  2.6 s\n  interrupted: it may have run or not')
  })
  it('says once what failed, however long it is', () => {
    const message = `model "m/m" lost the connection ${'again and '.repeat(20)}for good`
    const { said } = seen([delta('begun'), logged({ type: 'error', ...at, phase: 'request', code: 'model_failed', message }), end({ reason: 'failed', message })])
    expect(said.replace(/\s+/g, ' ')).toBe(`begun request failed: ${message} 1 step · 12 tokens · 1.5 s`)
    expect(seen([logged({ type: 'error', ...at, phase: 'request', code: 'model_failed', message: 'cut' }), end({ reason: 'truncated', message: 'cut' })]).said).toBe('request failed: cut\ntruncated\n\n1 step · 12 tokens · 1.5 s')
    expect(seen([end({ reason: 'failed', message: 'the disk is full' })]).said).toMatch(/^failed: the disk is full/)
  })
  it('shows thoughts from their begin, whenever the person asks for them meanwhile', () => {
    let thoughts = false
    const view = new TurnView({ width: () => 60, thoughts: () => thoughts, verbose: false }, 0), said: string[] = []
    const see = (text: string) => { view.see(delta(text, { kind: 'reasoning' }), 0); said.push(...view.take().map(line => painted(line, plain))) }
    see('first, ')
    thoughts = true
    view.showThoughts()
    see('then more\n\n')
    thoughts = false
    see('unseen ')
    thoughts = true
    see('and the rest\n')
    view.see(reply('so'), 0)
    expect([...said, ...view.take().map(line => painted(line, plain))].filter(line => line !== '')).toEqual(['first, then more', 'unseen and the rest', 'so'])
  })
  it('folds thoughts into one line, once, and shows them where they are wanted', () => {
    const thinking = [delta('deep thoughts', { kind: 'reasoning' }), delta('so'), reply('so', { reasoning: 'deep thoughts' }), end()]
    expect(seen(thinking).said).toMatch(/^∴ thought.*\n\nso\n\n1 step/)
    expect(seen(thinking).view.lastThoughts).toBe('deep thoughts')
    expect(seen(thinking, true).said).toMatch(/^deep thoughts\n\nso\n\n1 step/)
  })
  it('shows nothing that a terminal would obey, whoever wrote it', () => {
    const evil = '\u001b]0;t\u0007\u001b[2Jevil\u009b31m\u202e'
    const { said, live } = seen([delta(evil, { kind: 'reasoning' }), delta(evil), reply(evil), intent('a', { command: evil }), { type: 'progress', callId: 'a', name: 'bash', message: evil }, result('b', evil, { kind: 'failed' }), logged({ type: 'warning', ...at, message: evil }), logged({ type: 'error', ...at, phase: 'request', code: 'x', message: evil })])
    expect(said + live).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    expect(said).toContain('evil')
  })
  it('says what it cost where that is known', () => {
    expect(seen([reply('x'), end({ usage: { inputTokens: 10, outputTokens: 2, cost: 0.0123 } })]).said).toContain('12 tokens · $0.012 · 1.5 s')
  })
})
