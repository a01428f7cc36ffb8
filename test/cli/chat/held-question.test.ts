import { describe, expect, it } from 'vitest'
import { HeldQuestion } from '../../../core/cli/chat/held-question.js'
import { UNREAD_MS } from '../../../core/cli/chat/question.js'

const HELD = [{ file: '/p/plugins/guard.ts', since: '2026-01-01T00:00:00.000Z', change: 'changed', added: 2, removed: 1, diff: '' }] as const
const key = (text: string, more: { name?: string; ctrl?: boolean } = {}) => ({ name: more.name ?? text, ctrl: more.ctrl ?? false, meta: false, text: more.ctrl ? '' : text })

/** The answers that keys give, each pressed `after` so many milliseconds, and whether the key was the question's. */
function pressed(keys: readonly ReturnType<typeof key>[], after = UNREAD_MS): [answers: string[], taken: boolean[]] {
  const answers: string[] = [], question = new HeldQuestion(HELD).asked(answer => { answers.push(answer) })
  question.begin(0)
  return [answers, keys.map(one => question.press(one, after))]
}

describe('the question whether to load what a tool may have changed', () => {
  it('takes y and d, and anything else for a no', () => {
    expect(pressed([key('y')])).toEqual([['load'], [true]])
    expect(pressed([key('D')])).toEqual([['diff'], [true]])
    expect(pressed([key('n')])).toEqual([['leave'], [true]])
    expect(pressed([key('\r', { name: 'return' })])).toEqual([['leave'], [false]])
    expect(pressed([key('d', { ctrl: true })])).toEqual([['leave'], [true]])
  })
  it('takes no key for a yes that a person typed before it could be read, nor one in the midst of words, nor what is pasted: they go to the text', () => {
    expect(pressed([key('y')], UNREAD_MS - 1)).toEqual([['leave'], [false]])
    expect(pressed([...'say'].map(text => key(text)))).toEqual([['leave'], [false, false, false]])
    expect(pressed([key('y', { name: 'paste' })])).toEqual([['leave'], [false]])
  })
  it('says once what is asked, also when it is put again', () => {
    const question = new HeldQuestion(HELD), text = () => question.asked(() => {}).shown(80).flat().map(one => one.text).join('')
    expect(text()).toBe('a tool may have changed /p/plugins/guard.ts (+2 -1)')
    expect(text()).toBe('')
  })
})
