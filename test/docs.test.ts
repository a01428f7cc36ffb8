import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Command } from 'commander'
import { transformSync } from 'oxc-transform'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as api from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import { program } from '../core/cli/command-line.js'
import { declareDaemon } from '../core/cli/commands/daemon.js'
import { declareLook } from '../core/cli/commands/look.js'
import { declareWork } from '../core/cli/commands/work.js'
import { parseConfig } from '../core/loader/config.js'
import { validateConfig } from '../core/loader/plugin-config.js'
import { blocks, DOCS, readDocument, ROOT, type Block } from './support/documents.js'
import { folder, type Folder } from './support/folder.js'
import { CLI, place } from './support/hx.js'
import { linesOf, picture } from './support/terminal-picture.js'
import { hookReference } from './support/hook-reference.js'

const root = ROOT, read = readDocument
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
    expect(blocks.filter(({ language }) => !['', 'sh', 'console', 'ts', 'yaml', 'json'].includes(language))).toEqual([])
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
})

describe('what the documents name beside their blocks', () => {
  it('is a command that is there, with options that it takes', () => {
    for (const declare of [declareWork, declareDaemon, declareLook]) declare()
    const named = DOCS.flatMap(doc => [...read(doc).matchAll(/`hx ([^`]+)`/g)].map(match => ({ doc, words: match[1]!.replaceAll('\\|', '|').split(' ') })))
    expect(named.length).toBeGreaterThan(60)
    for (const { doc, words } of named) {
      let command: Command = program
      for (const word of words) {
        const next = command.commands.find(one => one.name() === word)
        if (next) command = next
        if (word.startsWith('--') && word !== '--help') expect([doc, words.join(' '), [...command.options, ...program.options].map(({ long }) => long)]).toEqual([doc, words.join(' '), expect.arrayContaining([word])])
      }
      if (/^[a-z]/.test(words[0]!)) expect([doc, words.join(' '), command === program]).toEqual([doc, words.join(' '), false])
    }
  })
  it('is a script of package.json', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    for (const doc of DOCS) for (const [, name] of read(doc).matchAll(/npm run ([\w-]+)/g)) expect([doc, Object.keys(scripts)]).toEqual([doc, expect.arrayContaining([name])])
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
