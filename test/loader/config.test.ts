import fc from 'fast-check'
import { parseDocument, visit, isCollection } from 'yaml'
import { describe, expect, it } from 'vitest'
import { parseConfig, parseLayers } from '../../core/loader/config.js'
import { tooMuch } from '../../core/loader/config-limits.js'
import { configJsonSchema } from '../../core/loader/config-schema.js'
import { parseEnvFile, withEnvFile } from '../../core/loader/env-file.js'
import { interpolate } from '../../core/loader/interpolate.js'

const FILE = 'harness.config.yaml'
/** `line:column message` of each problem. */
const problems = (text: string) => parseConfig(text, FILE).problems.map(({ line, column, message }) => `${line}:${column} ${message}`)
const config = (text: string) => {
  const parsed = parseConfig(text, FILE)
  expect(parsed.problems).toEqual([])
  return parsed.config!
}

describe('a config', () => {
  it('has a default for every key', () => {
    expect(config('plugins: []')).toMatchObject({
      version: 1, agent: { maxSteps: 50, maxContinuations: 8, askTimeout: 300_000 }, reload: { watch: true, drainMs: 5000, trustTools: false },
      workspace: { roots: [] }, sessions: { durability: 'commit' }, server: {}, log: { level: 'info' }, plugins: [],
    })
  })
  it('takes rows short and long, in their order', () => {
    const { plugins } = config('plugins:\n  - audit\n  - name: permission\n    required: true\n    config: { ask: ["git push *"] }\n  - name: guard\n    id: guard-2\n    from: ./my/guard.ts\n    enabled: false\n')
    expect(plugins.map(({ id, name, enabled, required, from, config }) => [id, name, enabled, required, from, config])).toEqual([
      ['audit', 'audit', true, false, undefined, {}], ['permission', 'permission', true, true, undefined, { ask: ['git push *'] }], ['guard-2', 'guard', false, false, './my/guard.ts', {}],
    ])
  })
  it('knows where each part of a plugin\'s config stands', () => {
    const [row] = config('plugins:\n  - name: guard\n    config:\n      rules:\n        - limit: ten\n').plugins
    expect(row!.at).toEqual({ file: FILE, line: 2, column: 5 })
    expect(row!.place(['rules', 0, 'limit'])).toEqual({ file: FILE, line: 5, column: 18 })
    expect(row!.place(['rules', 0, 'gone', 'deeper'])).toMatchObject({ line: 5 })
    expect(row!.place([])).toMatchObject({ line: 4 })
  })
  it('is frozen through and through', () => {
    const { plugins, agent } = config('plugins: [{ name: a, config: { list: [{ b: 1 }] } }]')
    expect(() => { (plugins[0]!.config['list'] as { b: number }[])[0]!.b = 2 }).toThrow(TypeError)
    expect(() => { (agent as { maxSteps: number }).maxSteps = 2 }).toThrow(TypeError)
  })
  it.each([
    ['an unknown key', 'agent: { maxStep: 5 }', '1:10 "agent.maxStep" is not a key; did you mean "maxSteps"?'],
    ['an unknown section', 'plugin: []', '1:1 "plugin" is not a key; did you mean "plugins"?'],
    ['an unknown key of a row', 'plugins:\n  - name: a\n    enable: false', '3:5 "plugins[0].enable" is not a key; did you mean "enabled"?'],
    ['a wrong type', 'agent:\n  maxSteps: "ten"', '2:13 agent.maxSteps must be a whole number, received "ten"'],
    ['a number that is too small', 'agent: { maxSteps: 0 }', '1:20 agent.maxSteps must be at least 1, received 0'],
    ['a wrong word', 'log: { level: warm }', '1:15 log.level must be one of "debug", "info", "warn", "error"; did you mean "warn"?, received "warm"'],
    ['a wrong duration', 'agent: { askTimeout: soon }', '1:22 agent.askTimeout must be a duration such as "500ms", "5s" or "10m", received "soon"'],
    ['a version from the future', 'version: 2', '1:10 version must be 1, received 2'],
    ['nothing where a list belongs', 'plugins:\n', '1:9 plugins must be a list, received nothing'],
    ['a row that is no row', 'plugins: [7]', '1:11 plugins[0] must be a text, received 7'],
    ['a row without a name', 'plugins: [{ enabled: false }]', '1:11 plugins[0] needs a name'],
    ['a name that leads out of the folder', 'plugins: ["../evil"]', '1:11 plugins[0] must be 1 to 64 letters, digits, ".", "_" or "-", beginning with a letter or digit, received "../evil"'],
    ['a wrong word in a price', 'agent: { prices: { deepseek: { input: 1, output: 2, cahced: 1 } } }', '1:53 "agent.prices.deepseek.cahced" is not a key; did you mean "cached"?'],
    ['a free budget', 'agent: { maxCost: 0 }', '1:19 agent.maxCost must be more than 0, received 0'],
    ['a price in words', 'agent: { maxCost: much }', '1:19 agent.maxCost must be a number, received "much"'],
    ['a negative price', 'agent: { prices: { deepseek: { input: -1, output: 2 } } }', '1:39 agent.prices.deepseek.input must be at least 0, received -1'],
    ['equal keys', 'plugins: []\nlog: {}\nplugins: []', '3:1 the key "plugins" stands here and in line 1; drop one of them'],
    ['equal ids', 'plugins:\n  - audit\n  - name: audit', '3:5 the id "audit" stands here and in line 2; give one of the two rows another id'],
    ['a custom tag', 'plugins: !!js/function "x"', '1:24 tags are not used here: remove "!!js/function"'],
    ['another tag', 'log: !mine {}', '1:12 tags are not used here: remove "!mine"'],
    ['tabs', 'plugins:\n\t- a', '2:1 tabs are not allowed as indentation; use spaces'],
    ['an empty file', '', '1:1 the file is empty; a config without plugins says "plugins: []"'],
    ['a file of comments', '# nothing\n', '1:1 the file is empty; a config without plugins says "plugins: []"'],
    ['a list as file', '- a', '1:1 the file must be a map, received ["a"]'],
    ['a merge key', 'log: &a { level: info }\nserver:\n  <<: *a', '3:3 merge keys ("<<") are not part of YAML 1.2; write the keys out, or use an alias for a whole value'],
    ['a prototype as key', '__proto__: { x: 1 }', '1:1 "__proto__" can not be a key'],
    ['an alias to nothing', 'log: *gone', '1:6 there is no anchor "&gone" before this alias'],
    ['an alias inside what it names', 'plugins: &a [*a]', '1:14 the alias "*a" stands inside what it names'],
    ['two documents', 'plugins: []\n---\nplugins: []', '2:1 the file must hold one YAML document, here begins a second one'],
    ['a list that does not end', 'plugins: [a', undefined],
    ['a missing colon', 'plugins:\n  - name a\n    b: c', undefined],
  ])('says where there is %s', (_, text, expected) => {
    expect(parseConfig(text, FILE).config).toBeUndefined()
    if (expected === undefined) expect(problems(text)[0]).toMatch(/^\d+:\d+ [a-z]/)
    else expect(problems(text)).toEqual([expected])
  })
  it('names every problem, not the first alone', () => {
    expect(problems('agent: { maxSteps: no }\nlog: { levle: info }\nplugins: [{ name: a, x: 1 }, 3]')).toHaveLength(4)
  })
  it('may use anchors for whole values', () => {
    expect(config('plugins:\n  - { name: a, config: &c { x: 1 } }\n  - { name: b, config: *c }').plugins[1]!.config).toEqual({ x: 1 })
  })
  it('is not blown up by aliases', () => {
    const bomb = `plugins:\n  - name: a\n    config:\n      a: &a [x, x, x, x, x, x, x, x, x]\n${'bcdefghi'.split('').map((key, index) => `      ${key}: &${key} [${Array.from({ length: 9 }, () => `*${'abcdefgh'[index]}`).join(', ')}]`).join('\n')}\n`
    expect(problems(bomb)).toEqual(['1:1 aliases must not be expanded more than 20 times'])
  })
  it('can not pollute a prototype', () => {
    parseLayers([{ file: 'user', text: 'plugins: [{ name: a, config: { constructor: { prototype: { hacked: 1 } } } }]' }, { file: FILE, text: 'plugins: [{ name: a, config: { prototype: { hacked: 1 } } }]' }])
    expect({}).not.toHaveProperty('hacked')
  })
})

describe('the limits of a text', () => {
  it('stop a deep one before the parser sees it, again and again', () => {
    for (let round = 0; round < 20; round++) expect(problems(`plugins: ${'['.repeat(5000)}${']'.repeat(5000)}`)).toEqual([`1:${9 + 64} nesting must not be deeper than 64`])
    for (const deep of ['- '.repeat(5000), 'a: '.repeat(5000), Array.from({ length: 200 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'), '[\n'.repeat(5000), '{a: '.repeat(300), '? '.repeat(3000)]) expect(problems(deep)[0]).toContain('nesting must not be deeper than 64')
  })
  it('stop a large one', () => {
    expect(problems(`# ${'x'.repeat(256 * 1024)}\nplugins: []`)).toEqual(['1:1 the file must not be larger than 256 KB, it has 257 KB'])
  })
  it('let brackets in texts and comments be', () => {
    expect(problems(`plugins:\n  - name: a # ${'['.repeat(200)}\n    config:\n      a: "${'['.repeat(200)}"\n      b: '${'{'.repeat(200)}'\n`)).toEqual([])
  })
  it('let no text through that nests a thousand deep', () => {
    const piece = fc.constantFrom('[', ']', '{', '}', '"', "'", '#', ' ', '\n', '- ', 'a: ', ', ', '|\n', '  ', '\\', 'x', '["]",', '["\n')
    fc.assert(fc.property(fc.array(piece, { maxLength: 400 }), fc.constantFrom('', '[', '["]", ', '- '), fc.integer({ min: 1, max: 300 }), (pieces, repeated, times) => {
      const text = pieces.join('') + repeated.repeat(times)
      if (tooMuch(text)) return
      let depth = 0
      visit(parseDocument(text, { prettyErrors: false }), { Node: (_, node, path) => { if (isCollection(node)) depth = Math.max(depth, path.length) } })
      expect(depth / 2).toBeLessThan(1000)
    }), { numRuns: 300 })
  })
})

describe('two layers', () => {
  const user = 'agent: { model: offline, maxSteps: 9 }\nlog: { level: debug }\nplugins:\n  - audit\n  - { name: permission, locked: true, config: { a: 1 } }\n  - { name: notes, config: { x: 1, y: 1 }, required: true }\n'
  const both = (project: string) => parseLayers([{ file: 'user.yaml', text: user }, { file: 'project.yaml', text: project }])
  it('put the user\'s rows first, and a project\'s row of the same id at the user\'s place, key by key', () => {
    const { config } = both('agent: { maxSteps: 3 }\nplugins:\n  - own\n  - { name: notes, config: { x: 2 } }\n  - { id: audit, enabled: false }')
    expect(config?.plugins.map(({ id, enabled, required, config, origin }) => [id, enabled, required, config, origin])).toEqual([
      ['audit', false, false, {}, 'user.yaml'], ['permission', true, false, { a: 1 }, 'user.yaml'], ['notes', true, true, { x: 2 }, 'user.yaml'], ['own', true, false, {}, 'project.yaml'],
    ])
    expect(config?.agent).toMatchObject({ model: 'offline', maxSteps: 3 })
    expect(config?.log.level).toBe('debug')
  })
  it('say that a locked row was not changed', () => {
    const { config, notes } = both('plugins:\n  - { name: permission, enabled: false }')
    expect(config?.plugins.find(row => row.id === 'permission')).toMatchObject({ enabled: true, config: { a: 1 } })
    expect(notes).toEqual([{ file: 'project.yaml', line: 2, column: 5, message: 'the row "permission" has no effect: it is locked in user.yaml:5:5' }])
  })
  it('refuse a row without a name that is in no lower layer', () => {
    expect(both('plugins: [{ id: gone, enabled: false }]').problems).toMatchObject([{ file: 'project.yaml', message: 'the row "gone" needs a name: there is no row of that id in a lower layer' }])
  })
  it('name the file that a problem is in', () => {
    expect(both('agent: { maxSteps: x }').problems).toMatchObject([{ file: 'project.yaml', line: 1 }])
  })
})

describe('references', () => {
  const sources = { env: { TOKEN: 'secret', EMPTY: '' }, read: (file: string) => { if (file !== '/run/key') throw new Error('no such file'); return 'from-file\n' } }
  it('are replaced in texts, however deep, and nothing else is', () => {
    const { value, unresolved } = interpolate({ a: '${env:TOKEN}', b: ['x${env:TOKEN}y', { c: '${file:/run/key}' }], d: '${HOME} $TOKEN ${TOKEN} ${exec:ls}', n: 5, e: '${env:NONE:-fallback}', f: '${env:EMPTY:-fallback}', g: '${env:EMPTY}', h: '${env:NONE:-}' }, sources)
    expect(value).toEqual({ a: 'secret', b: ['xsecrety', { c: 'from-file' }], d: '${HOME} $TOKEN ${TOKEN} ${exec:ls}', n: 5, e: 'fallback', f: 'fallback', g: '', h: '' })
    expect(unresolved).toEqual([])
  })
  it('are not looked for in what they bring', () => {
    expect(interpolate('${env:A}', { ...sources, env: { A: '${env:TOKEN}' } }).value).toBe('${env:TOKEN}')
  })
  it('that lead nowhere are problems with their path', () => {
    expect(interpolate({ a: { b: ['${env:NONE}', '${file:/gone}'] }, c: '${env:1x}', d: '${env:NONE:-${env:TOKEN}}' }, sources).unresolved).toEqual([
      { path: ['a', 'b', 0], message: '${env:NONE}: the environment variable "NONE" is not set; set it, or write ${env:NONE:-default}' },
      { path: ['a', 'b', 1], message: '${file:/gone}: no such file' },
      { path: ['c'], message: '${env:1x}: "1x" is not the name of an environment variable' },
      { path: ['d'], message: '${env:NONE:-${env:TOKEN}: a default can not hold another reference; write the value out' },
    ])
  })
})

describe('.env', () => {
  it('is read as people write it', () => {
    expect({ ...parseEnvFile('\uFEFF# note\nA=1\r\nexport B = two words \nC="a\\nb \\"q\\" # no" # yes\nD=\'$A\\n\'\nE=x # note\nF=\nG="two\nlines"\nnot a line\nH=a#b\nI="open\nJ=1=2') }).toEqual({ A: '1', B: 'two words', C: 'a\nb "q" # no', D: '$A\\n', E: 'x', F: '', G: 'two\nlines', H: 'a#b', I: '"open', J: '1=2' })
  })
  it('takes what it wrote, whatever is in it', () => {
    fc.assert(fc.property(fc.dictionary(fc.stringMatching(/^[A-Z][A-Z_]{0,8}$/), fc.string()), values => {
      const text = Object.entries(values).map(([key, value]) => `${key}="${value.replace(/[\\"$]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}"`).join('\n')
      expect({ ...parseEnvFile(text) }).toEqual({ ...values })
    }))
  })
  it('gives way to the real environment, and is no prototype', () => {
    expect({ ...withEnvFile({ A: 'real', C: undefined }, parseEnvFile('A=file\nB=file\nC=file\n__proto__=x')) }).toMatchObject({ A: 'real', B: 'file', C: 'file' })
    expect(Object.getPrototypeOf(parseEnvFile('__proto__=x'))).toBeNull()
  })
})

describe('the JSON Schema', () => {
  it('describes every key, and plugins\' configs by name', () => {
    const schema = configJsonSchema({ guard: { type: 'object', properties: { limit: { type: 'number' } } } })
    expect(schema).toMatchObject({ $schema: 'https://json-schema.org/draft/2020-12/schema', additionalProperties: false, properties: { agent: { properties: { askTimeout: { type: 'string' }, maxSteps: { default: 50, description: expect.any(String) } } } } })
    expect(JSON.stringify(schema)).toContain('"const":"guard"')
    expect(schema).not.toHaveProperty('required')
  })
})
