import { appendFileSync, chmodSync, readFileSync, statSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { accepted, complete } from '../../../core/cli/chat/completion.js'
import { draftOf, edit, EMPTY, type Draft, type Key } from '../../../core/cli/chat/editor.js'
import { History } from '../../../core/cli/chat/history.js'
import { filesLike, resolveMentions } from '../../../core/cli/chat/mentions.js'
import { Question } from '../../../core/cli/chat/question.js'
import type { ApprovalAnswer } from '../../../core/agent/services.js'
import { folder } from '../../support/folder.js'

const key = (name: string, more: Partial<Key> = {}): Key => ({ name, ctrl: false, meta: false, text: name.length === 1 ? name : '', ...more })
const ctrl = (name: string) => key(name, { ctrl: true, text: '' })
const typed = (keys: readonly (string | Key)[], from: Draft = EMPTY) => keys.reduce<Draft>((draft, one) => edit(draft, typeof one === 'string' ? key('', { text: one }) : one) ?? draft, from)

describe('the text that is typed', () => {
  it('is edited where the cursor is, by whole characters as a person sees them', () => {
    expect(typed(['a', '👩‍👩‍👧', 'é', key('left'), key('left'), key('backspace')])).toEqual({ text: '👩‍👩‍👧é', cursor: 0 })
    expect(typed(['a', '👩‍👩‍👧', key('backspace')])).toEqual({ text: 'a', cursor: 1 })
    expect(typed([ctrl('a'), key('delete')], draftOf('日本'))).toEqual({ text: '本', cursor: 0 })
  })
  it('knows the keys of a shell', () => {
    const draft = draftOf('one two\nthree four')
    expect(typed([ctrl('w')], draft).text).toBe('one two\nthree ')
    expect(typed([ctrl('u')], draft).text).toBe('one two\n')
    expect(typed([ctrl('a'), ctrl('k')], draft).text).toBe('one two\n')
    expect(typed([key('up'), key('left', { ctrl: true })], draft).cursor).toBe(4)
    expect(typed([key('b', { meta: true, text: '' })], draft).cursor).toBe(14)
  })
  it('keeps its column from line to line, and says where there is no further one', () => {
    expect(typed([key('up')], draftOf('long line\nab')).cursor).toBe(2)
    expect(edit(draftOf('one line'), key('up'))).toBeUndefined()
    expect(edit(draftOf('one line'), key('down'))).toBeUndefined()
  })
  it('takes a pasted block as one, without its control characters', () => {
    expect(typed([key('paste', { text: 'a\r\nb\u0007\u001b[31mc' })])).toEqual({ text: 'a\nbc', cursor: 4 })
  })
  it('has its cursor inside and between characters, whatever is pressed', () => {
    const keys = fc.oneof(fc.constantFrom(key('left'), key('right'), key('up'), key('down'), key('home'), key('end'), key('backspace'), key('delete'), ...['a', 'e', 'u', 'k', 'w', 'b', 'f', 'd', 'j', 'h'].map(ctrl), key('b', { meta: true, text: '' }), key('f', { meta: true, text: '' })), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 }).map(text => key('', { text })))
    fc.assert(fc.property(fc.array(keys, { maxLength: 40 }), pressed => {
      const { text, cursor } = typed(pressed)
      expect(cursor).toBeGreaterThanOrEqual(0)
      expect(cursor).toBeLessThanOrEqual(text.length)
      expect(text.slice(0, cursor)).not.toMatch(/[\ud800-\udbff]$/)
      expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/)
    }), { numRuns: 300 })
  })
})

describe('the history', () => {
  it('is looked through for a part of it, further and further back, and the text that was being written comes back', () => {
    const history = new History(folder().at('history'))
    for (const text of ['git log', 'fix the bug', 'git diff', 'go on']) history.add(text)
    expect(history.search('git', 'git')).toBe('git diff')
    expect(history.search('git diff', 'git')).toBe('git log')
    expect(history.search('git log', 'git')).toBeUndefined()
    expect([history.forth(), history.forth(), history.forth(), history.forth()]).toEqual(['fix the bug', 'git diff', 'go on', 'git'])
  })
  it('is there again in the next conversation, newest first, for the owner alone', () => {
    const file = folder().at('state/chat-history')
    const first = new History(file)
    for (const text of ['one', 'two\nlines', 'two\nlines', ' ']) first.add(text)
    const second = new History(file)
    expect([second.back('now'), second.back(''), second.back('')]).toEqual(['two\nlines', 'one', undefined])
    expect([second.forth(), second.forth(), second.forth()]).toEqual(['two\nlines', 'now', undefined])
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })
  it('passes over torn lines and what is no text', () => {
    const file = folder({ 'h': '"a"\n{"no":1}\n"to' }).at('h')
    expect(new History(file).back('')).toBe('a')
  })
  it('stays small however long it has been used', () => {
    const file = folder().at('h')
    appendFileSync(file, Array.from({ length: 3000 }, (_, i) => `"${i}"\n`).join(''))
    expect(new History(file).back('')).toBe('2999')
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(1001)
  })
  it('does without its file where there can be none', () => {
    const place = folder({ 'file': 'x' })
    chmodSync(place.at('file'), 0o400)
    const history = new History(place.at('file/below'))
    history.add('kept in memory')
    expect(history.back('')).toBe('kept in memory')
  })
})

describe('completion', () => {
  const sources = (cwd = '/') => ({ cwd, commands: [{ value: 'model', about: 'm', words: [{ value: 'openai/a' }, { value: 'openai/b' }] }, { value: 'mode' }, { value: 'help' }] })
  const tab = (text: string, cwd?: string) => { const draft = draftOf(text), found = complete(draft, sources(cwd)); return found ? accepted(draft, found).text : undefined }
  it('knows commands and the words behind them', () => {
    expect([tab('/h'), tab('/mo'), tab('/model op'), tab('/model openai/a'), tab('/x'), tab('words')]).toEqual(['/help ', '/mode', '/model openai/', '/model openai/a ', undefined, undefined])
  })
  it('knows files behind @, folders with a slash, hidden ones only when asked for', () => {
    const { path } = folder({ 'README.md': '', 'src/a.ts': '', 'src/b.ts': '', '.env': '' })
    expect([tab('look at @RE', path), tab('@s', path), tab('@src/', path), tab('@src/a', path), tab('@.e', path), tab('a@R', path)]).toEqual(['look at @README.md ', '@src/', '@src/', '@src/a.ts ', '@.env ', undefined])
    expect(filesLike('', path)).toEqual(['README.md', 'src/'])
    expect(filesLike('gone/', path)).toEqual([])
  })
  it('puts names with spaces into quotes, and goes on inside them', () => {
    const { path } = folder({ 'my notes/first draft.md': '', 'my notes/plain.md': '', 'mine.txt': '' })
    expect(tab('see @my', path)).toBe('see @"my notes/')
    expect(tab('see @"my notes/', path)).toBe('see @"my notes/')
    expect(tab('see @"my notes/f', path)).toBe('see @"my notes/first draft.md" ')
    expect(tab('see @m', path)).toBe('see @"m')
    expect(tab('see @min', path)).toBe('see @mine.txt ')
    const inside = { text: 'see @"my notes/pl" too', cursor: 17 }
    expect(accepted(inside, complete(inside, sources(path))!).text).toBe('see @"my notes/plain.md" too')
    expect(resolveMentions('see @"my notes/first draft.md"', path)).toMatchObject({ problems: [], prompt: expect.stringContaining('my notes/first draft.md (0 bytes)') })
  })
  it('knows how many files there are, of which it shows the first', () => {
    const { path } = folder(Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`many/f${String(n).padStart(3, '0')}`, ''])))
    expect(filesLike('many/f', path)).toHaveLength(300)
    expect(filesLike('many/f', path)[0]).toBe('many/f000')
  })
})

describe('@file', () => {
  it('tells the model what is meant, and says what is not there', () => {
    const { path } = folder({ 'README.md': 'hello', 'src/a.ts': '' })
    expect(resolveMentions('compare @README.md with @src, mail a@b.c', path)).toEqual({ prompt: 'compare @README.md with @src, mail a@b.c\n\n[Named with @, relative to the workspace: README.md (5 bytes), src (folder)]', problems: [] })
    expect(resolveMentions('see @README.md.', path).problems).toEqual([])
    expect(resolveMentions('see @gone.md', path).problems).toEqual([`"@gone.md" is no file or folder of ${path}`])
    expect(resolveMentions('see @/etc/passwd', path).problems).toEqual([`"@/etc/passwd" lies outside of ${path}; tools do not reach it`])
  })
})

describe('an ask in a chat', () => {
  const open = (command = 'npm test', reason = 'not on the allow list') => {
    const answers: (ApprovalAnswer | undefined)[] = []
    const question = new Question({ session: 's', turn: 1, call: { id: 'c', name: 'bash', arguments: { command } }, reason, plugin: 'permission', signal: new AbortController().signal }, answer => { answers.push(answer) })
    question.begin(0)
    return { question, answers, press: (...keys: Key[]) => { for (const one of keys) question.press(one, 1000) } }
  }
  it('shows the whole call, without what a terminal would obey', () => {
    const { question } = open(`echo ${'x'.repeat(100)}\u001b[2K && rm -rf /`)
    const shown = question.shown(40).map(line => line.map(({ text }) => text).join('')).join('\n')
    expect(shown.replace(/\s/g, '')).toContain(`echo${'x'.repeat(100)}&&rm-rf/`)
    expect(shown).not.toContain('\u001b')
  })
  it('is answered by one key, and a no by its reason', () => {
    for (const [name, answer] of [['y', 'once'], ['s', 'session'], ['a', 'always']] as const) {
      const { press, answers } = open()
      press(key(name))
      expect(answers).toEqual([{ answer }])
    }
    const { press, answers } = open()
    press(key('n'), key('y'), key('o'), key('return', { text: '\r' }))
    expect(answers).toEqual([{ answer: 'denied', note: 'yo' }])
  })
  it('takes no answer that was typed before it could be read, nor "always" where no rule says exactly this', () => {
    const early = open()
    early.question.press(key('y'), 100)
    expect(early.answers).toEqual([])
    const listed = open('rm x', "'rm *' is on the ask list")
    listed.press(key('a'))
    expect(listed.answers).toEqual([])
  })
})
