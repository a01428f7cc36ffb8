import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'oxc-transform'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as api from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import { parseConfig } from '../core/loader/config.js'
import { validateConfig } from '../core/loader/plugin-config.js'
import { folder, type Folder } from './support/folder.js'
import { CLI, place } from './support/hx.js'
import { linesOf, picture } from './support/terminal-picture.js'
import { hookReference } from './support/hook-reference.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const DOCS = ['README.md', 'core/README.md', 'plugins/README.md']
interface Block { readonly doc: string; readonly line: number; readonly language: string; readonly text: string }
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const blocks = DOCS.flatMap(doc => [...read(doc).matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map((match): Block => ({ doc, line: read(doc).slice(0, match.index).split('\n').length, language: match[1]!, text: match[2]! })))
const of = (language: string) => blocks.filter(block => block.language === language)

/** A block as a module: as its first line names it, or by its place. Lines alone, such as the examples of hooks, stand in an `apply`. */
function moduleOf({ doc, line, text }: Block): { readonly file: string; readonly text: string } {
  const named = /^\/\/ (plugins\/[\w-]+\.ts)/.exec(text)?.[1] ?? `plugins/${/export const name = '([\w-]+)'/.exec(text)?.[1] ?? `line-${line}`}${/harnessx\/testing/.test(text) ? '.test' : ''}.ts`
  const whole = /^(?:import|export) /m.test(text) ? text : `import { ${MAKERS.join(', ')}, type Context } from 'harnessx'\nexport const name = 'line-${line}'\nexport function apply(ctx: Context) {\n${text}}\n`
  return { file: join(doc.replace(/\.md$/, ''), named), text: whole }
}
const MAKERS = ['accept', 'allow', 'answer', 'ask', 'block', 'enter', 'proceed', 'reject', 'send', 'stop'] satisfies (keyof typeof api)[]

/** A project of a user with every block in it. */
function project(): Folder & { readonly modules: readonly { readonly file: string; readonly text: string }[] } {
  const modules = of('ts').map(moduleOf)
  const place = folder({ 'package.json': '{"type":"module"}', ...Object.fromEntries(modules.map(({ file, text }) => [file, text])) })
  mkdirSync(place.at('node_modules'))
  symlinkSync(root, place.at('node_modules/harnessx'))
  return { ...place, modules }
}
const ran = (args: readonly string[], cwd: string) => new Promise<string>(resolve => {
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...env } = process.env
  execFile(process.execPath, args, { cwd, env }, (error, stdout, stderr) => { resolve(error ? stdout + stderr : '') })
})

describe('every block of code in the documents', () => {
  it('is in a language that is tested here', () => {
    expect(blocks.filter(({ language }) => !['', 'sh', 'ts', 'yaml', 'json'].includes(language))).toEqual([])
    expect([of('ts').length, of('yaml').length, of('sh').length].every(count => count > 0)).toBe(true)
  })
  it('compiles, in TypeScript, against the package as a user has it', async () => {
    const { path, write } = project()
    write('tsconfig.json', JSON.stringify({ compilerOptions: { strict: true, noEmit: true, skipLibCheck: true, target: 'es2023', lib: ['es2023', 'esnext.disposable'], module: 'nodenext', noUncheckedIndexedAccess: true, verbatimModuleSyntax: true, types: ['node'], typeRoots: [join(root, 'node_modules/@types')] } }))
    expect(await ran([join(root, 'node_modules/typescript/bin/tsc'), '-p', path], path)).toBe('')
  })
  it.each(DOCS)('is a plugin that runs, where it is one: %s', async doc => {
    const { at, modules } = project()
    const plugins = modules.filter(({ file, text }) => file.startsWith(doc.replace(/\.md$/, '/')) && /^export (?:async )?function apply/m.test(text)).map(({ file }) => at(file))
    if (plugins.length === 0) return
    const host = await createTestHost({ plugins: [...plugins, 'tool-fs', 'tool-bash'], replies: ['done'] })
    onTestFinished(() => host.close())
    expect(host.plugins().filter(({ state }) => state !== 'active')).toEqual([])
    expect(host.log.filter(({ level }) => level === 'warn' || level === 'error').map(({ message }) => message)).toEqual([])
  })
  it('is a test that passes, where it is one', async () => {
    const { at, write, modules } = project()
    const tests = modules.filter(({ text }) => text.includes('harnessx/testing'))
    expect(tests.length).toBeGreaterThan(0)
    for (const { file, text } of tests) {
      const script = write(file.replace(/\.ts$/, '.mjs'), transformSync(file, text).code)
      expect(await ran(['--test', script], at(dirname(dirname(file))))).toBe('')
    }
  })
  it('is a config without problems, in YAML, down to the config of each plugin', async () => {
    for (const { doc, line, text } of of('yaml')) {
      const { config, problems } = parseConfig(/^- /m.test(text) && !/^\w/m.test(text) ? `plugins:\n${text.replace(/^/gm, '  ')}` : text, doc)
      expect([doc, line, problems]).toEqual([doc, line, []])
      for (const { name, id, config: given } of config?.plugins ?? []) {
        const module = [`plugins/${name}.ts`, `plugins/${name}/index.ts`].map(file => join(root, file)).find(existsSync)
        if (module === undefined) continue
        const { Config } = await import(module) as { Config?: Parameters<typeof validateConfig>[1] }
        await validateConfig(id ?? name, Config, JSON.parse(JSON.stringify(given ?? {}).replace(/\$\{env:\w+\}/g, 'x')), () => ({ file: doc, line }), given)
      }
    }
  })
  it('is JSON, in lines or whole', () => {
    for (const { doc, line, text } of of('json')) {
      const whole = (): unknown => JSON.parse(text), lines = (): unknown => text.trim().split('\n').map(one => JSON.parse(one) as unknown)
      try { lines() } catch { expect(whole, `${doc}:${line}`).not.toThrow() }
    }
  })
  it('names commands, scripts and options that are there, in shell', async () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const { hx } = place({})
    const commands = of('sh').flatMap(({ doc, text }) => text.split('\n').flatMap(line => line.replace(/(?:^|\s)#.*$/, '').split(/&&|\|\||;|\|/)).map(command => ({ doc, words: command.trim().split(/\s+/) }))).filter(({ words }) => words[0] !== '')
    const helps = new Map<string, Promise<string>>()
    const help = (command: string) => helps.get(command) ?? helps.set(command, hx([command, '--help']).then(({ code, stdout }) => code === 0 ? stdout : '')).get(command)!
    for (const { doc, words } of commands) {
      const [first, ...rest] = words[0] === 'npx' ? words.slice(1) : words, line = `${doc}: ${words.join(' ')}`
      if (first === 'npm' && ['run', 'test', 't'].includes(rest[0]!)) expect(Object.keys(scripts), line).toContain(rest[0] === 'run' ? rest[1]! : 'test')
      if (first !== 'hx' && first !== 'harnessx') continue
      const about = await help(rest.find(word => !word.startsWith('-')) ?? '')
      expect(about, line).not.toBe('')
      for (const option of rest.flatMap(word => /^--[a-z-]+/.exec(word)?.[0] ?? [])) expect(`${about}${await help('')}`, line).toContain(option)
    }
  })
})

describe('the picture in README.md', () => {
  it('is what hx demo prints, but for times, tokens and the order of calls that run together; HX_PICTURE=1 draws it anew', async () => {
    const { env, folder } = place({})
    const all = await new Promise<string>(resolve => { execFile('sh', ['-c', `exec "$0" "$1" demo 2>&1`, process.execPath, CLI], { cwd: folder, env }, (_, stdout) => { resolve(stdout) }) })
    const lines = all.trim().split('\n'), file = join(root, 'core/demo.svg')
    if (process.env['HX_PICTURE']) writeFileSync(file, picture(lines))
    const plain = (text: readonly string[]) => text.map(line => line.replace(/\d+(?:\.\d+)? ?m?s\b/g, 'T').replace(/tokens=\d+/g, 'tokens=N').replace(/cwd=\S+/g, 'cwd=X')).sort()
    expect(plain(linesOf(readFileSync(file, 'utf8')))).toEqual(plain(linesOf(picture(lines))))
    expect(read('README.md')).toContain('(core/demo.svg)')
  })
})

describe('plugins/README.md', () => {
  it('has the reference of the hooks as their contracts in core/agent/hooks.ts say it; run this test with -u to write it anew', async () => {
    const reference = hookReference(read('core/agent/hooks.ts'))
    const guide = read('plugins/README.md').replace(/(<!-- hooks -->\n)[^]*(<!-- \/hooks -->)/, (_, begin: string, end: string) => `${begin}${reference}\n${end}`)
    await expect(guide).toMatchFileSnapshot('../plugins/README.md')
  })
  it('has a part for every shipped plugin', () => {
    const guide = read('plugins/README.md')
    const shipped = readdirSync(join(root, 'plugins')).filter(file => !file.endsWith('.md')).map(file => basename(file, '.ts'))
    expect(shipped.length).toBeGreaterThan(20)
    expect(shipped.filter(name => !guide.includes(`\n## ${name}\n`))).toEqual([])
  })
})
