import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { daemon } from '../support/daemon.js'

const FILES = { 'harness.config.yaml': 'plugins: [tool-fs, model-openai]\n', 'note.txt': 'a ``` fence' }

describe('hx sessions', () => {
  it('archives a session, in the daemon or without one, and lets it be read and forked', async () => {
    const { hx } = await daemon(['one', 'two', 'three'], FILES)
    const session = (await hx(['agent', '--detach', 'hi'])).stdout.trim()
    await hx(['attach', session])
    expect(await hx(['sessions', 'archive', session.slice(0, -1)])).toMatchObject({ code: 0 })
    expect(await hx(['agent', '--session', session, 'more'])).toMatchObject({ code: 3, stderr: expect.stringContaining('archived') as unknown })
    const fork = (await hx(['sessions', 'fork', session])).stdout.trim()
    expect(await hx(['agent', '--session', fork, 'more'])).toMatchObject({ code: 0, stdout: 'two\n' })
    await hx(['stop'])
    expect(await hx(['sessions', 'archive', '--json', fork])).toMatchObject({ code: 0, stdout: `{"session":"${fork}","archived":true}\n` })
    expect(await hx(['agent', '--trust', '--session', fork, 'more'])).toMatchObject({ code: 3 })
  })
  it('forks at a line of the log, and says which lines there are', async () => {
    const { hx, model } = await daemon(['one', 'two', 'three'], FILES)
    const session = (await hx(['agent', '--detach', 'first'])).stdout.trim()
    await hx(['attach', session])
    const lines = (await hx(['sessions', 'show', '--json', session])).stdout.trim().split('\n').length
    await hx(['agent', '--session', session, 'second'])
    const fork = JSON.parse((await hx(['sessions', 'fork', session, '--at', String(lines), '--json'])).stdout) as { session: string; at: number }
    expect(fork.at).toBe(lines)
    await hx(['agent', '--session', fork.session, 'other'])
    expect(JSON.stringify(model.requests.at(-1)!.body.messages)).not.toContain('second')
    expect(await hx(['sessions', 'fork', session, '--at', '999'])).toMatchObject({ code: 2, stderr: expect.stringContaining('has no event 999') as unknown })
  })
  it('says of a damaged session that it is damaged, and of one that never was that there is none', async () => {
    const { hx, env } = await daemon(['one'], FILES)
    const session = (await hx(['agent', '--detach', 'hi'])).stdout.trim()
    await hx(['attach', session])
    await hx(['stop'])
    writeFileSync(join(env['HX_HOME']!, 'state', 'sessions', `${session}.jsonl`), 'garbage\n')
    for (const args of [['sessions', 'show'], ['sessions', 'export'], ['sessions', 'fork'], ['sessions', 'archive']]) {
      const { code, stdout } = await hx([...args, session, '--json'])
      expect([args, code, JSON.parse(stdout.trim().split('\n').at(-1)!)]).toEqual([args, 1, expect.objectContaining({ code: 'session_damaged' })])
    }
    expect(await hx(['agent', '--trust', '--session', session, 'more'])).toMatchObject({ code: 1, stderr: expect.stringContaining('its first line, which says what it is, is missing or damaged') as unknown })
    expect(await hx(['sessions', 'show', 'nothing'])).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no session "nothing"') as unknown })
    expect(await hx(['sessions', 'show', '../x'])).toMatchObject({ code: 2 })
  })
  it('exports log lines or a text to read, and writes over no file', async () => {
    const { hx, folder } = await daemon([{ toolCalls: [{ name: 'read_file', arguments: { path: 'note.txt' } }] }, 'it has a fence'], FILES)
    const session = (await hx(['agent', '--detach', 'read it'])).stdout.trim()
    await hx(['attach', session])
    expect((await hx(['sessions', 'export', session])).stdout).toBe((await hx(['sessions', 'show', '--json', session])).stdout)
    expect(await hx(['sessions', 'export', session, '--format', 'markdown', '-o', 'talk.md'])).toMatchObject({ code: 0, stdout: '' })
    const text = readFileSync(`${folder}/talk.md`, 'utf8')
    expect(text).toContain('> read it\n')
    expect(text).toMatch(/````\n[^]*a ``` fence[^]*\n````/)
    expect(text).toContain('\nit has a fence\n')
    expect(await hx(['sessions', 'export', session, '-o', 'talk.md'])).toMatchObject({ code: 2, stderr: expect.stringContaining('exists already') as unknown })
    expect(readFileSync(`${folder}/talk.md`, 'utf8')).toBe(text)
  })
})
