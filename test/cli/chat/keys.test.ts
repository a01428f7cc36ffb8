import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Key } from '../../../core/cli/chat/editor.js'
import { onKeys } from '../../../core/cli/chat/keys.js'
import { until } from '../../support/hx.js'

/** A terminal in raw mode, and what is pressed on it. */
function terminal() {
  const stdin = Object.assign(new PassThrough(), { setRawMode: () => {} }), keys: Key[] = []
  onTestFinished(onKeys(stdin as unknown as NodeJS.ReadStream, { write: () => {} }, key => { keys.push(key) }))
  return { write: (text: string) => { stdin.write(text) }, keys, texts: () => keys.map(({ name, text, ctrl }) => name === 'paste' ? `[${text}]` : ctrl ? `^${name}` : text) }
}

describe('the keys of a terminal', () => {
  it('come one by one, a pasted block as one', async () => {
    const { write, texts } = terminal()
    write('a\u001b[200~\u0003b\ncd\u001b[201~\u0003e')
    await until(() => texts().length === 4)
    expect(texts()).toEqual(['a', '[\u0003b\ncd]', '^c', 'e'])
  })
  it('are not swallowed for ever by a pasted block whose end was lost: Ctrl-C is one, and what comes late of the block is none', async () => {
    const { write, keys, texts } = terminal()
    write('\u001b[200~half')
    await until(() => keys.length === 1)
    write('late\n')
    await until(() => keys.length === 2)
    write('\u0003a')
    await until(() => keys.length === 4)
    expect(texts()).toEqual(['[half]', '[late\n]', '^c', 'a'])
  })
})
