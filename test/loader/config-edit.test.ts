import { execFile } from 'node:child_process'
import { chmodSync, lstatSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addRow, addToConfigList, editConfig, removeRow, setEnabled, setValue, type Edit } from '../../core/loader/config-edit.js'
import { parseConfig } from '../../core/loader/config.js'
import { folder } from '../support/folder.js'

const CONFIG = `# The order of the rows is the order of their handlers.
version: 1
agent: { model: deepseek/deepseek-chat,   maxSteps: 50 }   # inline
reload:
  watch: true     # saved is loaded
plugins:                              # order here = order of handlers
  - audit                             # short for { name: audit }

  - name: permission
    required: true
    config: { ask: ["git push *"] }   # and more
  - name: time-context
    enabled: false
  - { name: stats }
  # the last word
  - name: guard-staging
    config: { token: "\${env:STAGING_TOKEN}" }
log: {}
`
/** What an edit changes: lines that went, lines that came. */
function changes(edit: Edit, text = CONFIG): string[] {
  const left = text.split('\n')
  const came = edit(text, 'harness.config.yaml').split('\n').filter(line => {
    const at = left.indexOf(line)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
  return [...left.map(line => `-${line}`), ...came.map(line => `+${line}`)]
}

describe('an edit of the config', () => {
  it('spells out the short form to switch a row off', () => {
    expect(changes(setEnabled('audit', false))).toEqual(['-  - audit                             # short for { name: audit }', '+  - { name: audit, enabled: false }                             # short for { name: audit }'])
  })
  it('adds one line to a row that has lines', () => {
    expect(changes(setEnabled('permission', false))).toEqual(['+    enabled: false'])
  })
  it('changes one word where the row says it already', () => {
    expect(changes(setEnabled('time-context', true))).toEqual(['-    enabled: false', '+    enabled: true'])
  })
  it('adds to a row in braces', () => {
    expect(changes(setEnabled('stats', false))).toEqual(['-  - { name: stats }', '+  - { name: stats, enabled: false }'])
  })
  it('keeps references', () => {
    const text = setEnabled('guard-staging', false)(CONFIG, '')
    expect(text).toContain('token: "${env:STAGING_TOKEN}"')
  })
  it('changes nothing when nothing is to be changed', () => {
    expect(setEnabled('audit', true)(CONFIG, '')).toBe(CONFIG)
    expect(setEnabled('time-context', false)(CONFIG, '')).toBe(CONFIG)
  })
  it('gives a row of the user\'s file a row here that says no more than the change', () => {
    expect(changes(setEnabled('notes', false, ['notes']))).toEqual(['+  - { id: notes, enabled: false }'])
  })
  it('names the nearest entry when there is none of that id', () => {
    expect(() => setEnabled('permissoin', false)(CONFIG, 'x.yaml')).toThrow('there is no entry "permissoin" in x.yaml; did you mean "permission"?')
  })
  it('sets a key that is there, one that is not, and one whose section is not', () => {
    expect(changes(setValue(['agent', 'maxSteps'], 9))).toEqual(['-agent: { model: deepseek/deepseek-chat,   maxSteps: 50 }   # inline', '+agent: { model: deepseek/deepseek-chat,   maxSteps: 9 }   # inline'])
    expect(changes(setValue(['reload', 'drainMs'], 9))).toEqual(['+  drainMs: 9'])
    expect(changes(setValue(['log', 'level'], 'debug'))).toEqual(['-log: {}', '+log: { level: debug }'])
    expect(changes(setValue(['sessions', 'durability'], 'always'))).toEqual(['+sessions: { durability: always }'])
  })
  it('adds and removes rows', () => {
    const more = addRow({ name: 'notes' })(CONFIG, '')
    expect(parseConfig(more, '').config?.plugins.at(-1)?.id).toBe('notes')
    expect(removeRow('notes')(more, '')).toBe(CONFIG)
    expect(changes(removeRow('permission'))).toEqual(['-  - name: permission', '-    required: true', '-    config: { ask: ["git push *"] }   # and more'])
    expect(() => addRow({ name: 'audit' })(CONFIG, '')).toThrow('there is an entry "audit"')
  })
  it('begins a list where there is none', () => {
    for (const text of ['version: 1\n', 'version: 1', '{}', 'plugins: []\n', 'plugins: [a]']) {
      expect(parseConfig(addRow({ name: 'notes' })(text, ''), '').config?.plugins.at(-1)?.id).toBe('notes')
    }
    expect(addRow({ name: 'notes' })('plugins: [a]', '')).toBe('plugins: [a, notes]')
  })
  it('means the same apart from the one change, whatever the file looks like', () => {
    const row = fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd', 'e'), form: fc.constantFrom('short', 'block', 'flow', 'compact'), enabled: fc.constantFrom(undefined, true, false), note: fc.constantFrom('', '  # note', '\n') })
    fc.assert(fc.property(fc.uniqueArray(row, { selector: one => one.name, minLength: 1 }), fc.constantFrom('', '  ', '    '), fc.boolean(), fc.nat(), fc.boolean(), (rows, indent, tail, which, enabled) => {
      const text = `plugins:\n${rows.map(({ name, form, enabled: on, note }) => {
        const flag = on === undefined ? [] : [`enabled: ${on}`]
        if (form === 'short') return `${indent}- ${name}${note.trim() === '' ? '' : note}\n${note === '\n' ? '\n' : ''}`
        if (form === 'flow') return `${indent}- { ${[`name: ${name}`, ...flag].join(', ')} }\n`
        if (form === 'compact') return `${indent}- {name: ${name}${flag.length ? `,${flag[0]}` : ''}}\n`
        return `${indent}- name: ${name}${note.trim() === '' ? '' : note}\n${flag.map(one => `${indent}  ${one}\n`).join('')}`
      }).join('')}${tail ? '# end\nlog: {}\n' : ''}`
      const { name } = rows[which % rows.length]!
      const before = parseConfig(text, '').config!, after = parseConfig(setEnabled(name, enabled)(text, ''), '').config!
      expect(after.plugins.map(one => [one.id, one.enabled])).toEqual(before.plugins.map(one => [one.id, one.id === name ? enabled : one.enabled]))
      expect(setEnabled(name, enabled)(text, '').split('#').length).toBe(text.split('#').length)
    }))
  })
})

describe('writing an edit', () => {
  it('keeps the mode of the file, and the link that leads to it', async () => {
    const at = folder({ 'real.yaml': CONFIG })
    chmodSync(at.at('real.yaml'), 0o640)
    symlinkSync(at.at('real.yaml'), at.at('harness.config.yaml'))
    expect(await editConfig(at.at('harness.config.yaml'), setEnabled('audit', false))).toBe(true)
    expect(lstatSync(at.at('harness.config.yaml')).isSymbolicLink()).toBe(true)
    expect(statSync(at.at('real.yaml')).mode & 0o777).toBe(0o640)
    expect(parseConfig(readFileSync(at.at('real.yaml'), 'utf8'), '').config?.plugins[0]?.enabled).toBe(false)
  })
  it('refuses a file with a mistake in it, names the line, and leaves it as it is', async () => {
    const broken = 'plugins:\n\t- audit\n'
    const at = folder({ 'harness.config.yaml': broken })
    await expect(editConfig(at.at('harness.config.yaml'), setEnabled('audit', false))).rejects.toMatchObject({ code: 'config_invalid', place: { line: 2 } })
    expect(readFileSync(at.at('harness.config.yaml'), 'utf8')).toBe(broken)
  })
  it('keeps line ends that are CRLF, and a byte order mark, whatever is edited', () => {
    const form = (text: string) => `\ufeff${text.replaceAll('\n', '\r\n')}`
    for (const edit of [setEnabled('audit', false), setEnabled('permission', false), addRow({ name: 'new' }), addRow({ name: 'new', config: { a: 'two\nlines' } }), removeRow('stats'), setValue(['agent', 'model'], 'x/y'), addToConfigList('permission', 'allow', 'ls *')]) {
      expect(edit(form(CONFIG), '')).toBe(form(edit(CONFIG, '')))
    }
  })
  it('is refused where an anchor would carry it to another row, or take that row its value', () => {
    const text = 'plugins:\n  - name: a\n    enabled: &on true\n    config: &c { list: [x] }\n  - name: b\n    enabled: *on\n    config: *c\n'
    const rows = (edit: Edit) => parseConfig(edit(text, ''), '').config!.plugins.map(({ id, enabled, config }) => ({ id, enabled, config }))
    for (const edit of [setEnabled('a', false), removeRow('a'), addToConfigList('a', 'list', 'y'), addToConfigList('b', 'list', 'y')]) expect(() => edit(text, '')).toThrow('an anchor ("&name") and its alias ("*name") tie it to another place of the file')
    expect(rows(setEnabled('b', false))).toEqual([{ id: 'a', enabled: true, config: { list: ['x'] } }, { id: 'b', enabled: false, config: { list: ['x'] } }])
    expect(rows(removeRow('b'))).toHaveLength(1)
  })
  it('refuses a value that would make a mistake', async () => {
    const at = folder({ 'harness.config.yaml': CONFIG })
    await expect(editConfig(at.at('harness.config.yaml'), setValue(['agent', 'maxSteps'], 'ten'))).rejects.toMatchObject({ code: 'config_invalid' })
    expect(readFileSync(at.at('harness.config.yaml'), 'utf8')).toBe(CONFIG)
  })
  it('loses no edit of two writers, and no reader sees half a file', async () => {
    const rows = Array.from({ length: 12 }, (_, index) => `  - p${index}   # keep ${index}\n`).join('')
    const at = folder({ 'harness.config.yaml': `plugins:\n${rows}` })
    const file = at.at('harness.config.yaml')
    let done = false
    const reading = (async () => {
      while (!done) {
        expect(parseConfig(readFileSync(file, 'utf8'), file).config?.plugins).toHaveLength(12)
        await new Promise(setImmediate)
      }
    })()
    await Promise.all(Array.from({ length: 12 }, (_, index) => editConfig(file, setEnabled(`p${index}`, false))))
    done = true
    await reading
    const text = readFileSync(file, 'utf8')
    expect(parseConfig(text, file).config?.plugins.filter(row => row.enabled)).toEqual([])
    expect(text.match(/# keep/g)).toHaveLength(12)
    expect((await promisify(execFile)('ls', ['-A', at.path])).stdout.trim()).toBe('harness.config.yaml')
  })
})
