import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = (folder: string): string[] => readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
  .filter(entry => entry.isFile() && /\.ts$/.test(entry.name)).map(entry => relative(root, join(entry.parentPath, entry.name)))

interface Import { file: string; specifier: string; target: string; typeOnly: boolean }
const imports = (file: string): Import[] => {
  const text = readFileSync(join(root, file), 'utf8')
  const found = [...text.matchAll(/^\s*(?:import|export)\s+(type\s+)?(?:[^'"\n;]*?\sfrom\s+)?'([^']+)'/gm), ...text.matchAll(/()\bimport\(\s*'([^']+)'\s*\)/g)]
  return found.map(match => ({
    file, specifier: match[2]!, typeOnly: match[1] !== undefined && match[1] !== '',
    target: match[2]!.startsWith('.') ? relative(root, resolve(root, dirname(file), match[2]!)).replace(/\.js$/, '.ts') : match[2]!,
  }))
}
const core = files('core').flatMap(imports)
const plugins = files('plugins').flatMap(imports)

/** Layers of core/, lowest first. A file may import from its own layer and from those named. */
const MAY: Record<string, readonly string[]> = {
  kernel: ['errors'],
  agent: ['errors', 'z', 'kernel'],
  loader: ['errors', 'z', 'kernel', 'places', 'duration'],
  duration: ['z'],
  routes: ['errors', 'kernel'],
  app: ['errors', 'z', 'kernel', 'agent', 'loader', 'places', 'duration', 'api', 'testing', 'version', 'routes'],
  api: ['errors', 'kernel', 'agent', 'duration', 'routes'],
  testing: ['errors', 'z', 'kernel', 'agent', 'loader', 'app', 'api', 'places', 'duration'],
  daemon: ['errors', 'z', 'kernel', 'agent', 'app', 'version', 'places'],
  cli: ['errors', 'z', 'kernel', 'agent', 'loader', 'app', 'daemon', 'version', 'places', 'duration'],
}
const layer = (file: string) => file.split('/')[1]!.replace(/\.ts$/, '')

describe('the clock on the wall', () => {
  /** Who may ask for it: it was put there by others, goes to others, or is shown. */
  const MAY_ASK: Readonly<Record<string, string>> = {
    'core/daemon/run-mark.ts': 'moments that outlive a process', 'core/agent/unconfined-spans.ts': 'times of files', 'core/cli/code-cache.ts': 'times of files', 'core/cli/approvals.ts': 'shown',
    'plugins/model-openai/failures.ts': 'a date of an endpoint', 'plugins/openai-server/answer.ts': 'shown', 'plugins/time-context.ts': 'told to the model',
  }
  it('is asked by nobody who waits, gives up or orders: it can be set', () => {
    const asks = [...files('core'), ...files('plugins')].filter(file => readFileSync(join(root, file), 'utf8').split('\n').some(line => line.includes('Date.now()') && !/^\s*\*/.test(line)))
    expect(asks.filter(file => MAY_ASK[file] === undefined)).toEqual([])
  })
})

describe('the arrows of core/', () => {
  it('go down only', () => {
    const wrong = core.filter(({ file, target }) => target.startsWith('core/') && layer(target) !== layer(file) && MAY[layer(file)] !== undefined && !MAY[layer(file)]!.includes(layer(target)))
    expect(wrong.map(({ file, target }) => `${file} → ${target}`)).toEqual([])
  })
  it('leave agent and loader unknown to each other', () => {
    const between = core.filter(({ file, target }) => (file.startsWith('core/agent/') && target.startsWith('core/loader/')) || (file.startsWith('core/loader/') && target.startsWith('core/agent/')))
    expect(between).toEqual([])
  })
  it('never lead to a plugin', () => {
    expect(core.filter(({ target }) => target.startsWith('plugins/'))).toEqual([])
  })
  it('reach each outside thing from one place only', () => {
    const from = (name: string) => [...new Set([...core, ...plugins].filter(({ specifier, typeOnly }) => !typeOnly && (specifier === name || specifier.startsWith(`${name}/`))).map(({ file }) => file))]
    expect(from('cordis')).toEqual(['core/kernel/context.ts'])
    expect(from('zod')).toEqual(['core/api.ts', 'core/z.ts'])
    expect(from('chokidar')).toEqual(['core/loader/watcher.ts'])
    expect(from('yaml').every(file => file.startsWith('core/loader/config'))).toBe(true)
    expect(from('openai').every(file => file.startsWith('plugins/model-openai'))).toBe(true)
    expect(from('oxc-transform')).toHaveLength(1)
    expect(from('commander').every(file => /^core\/cli\/(?:main|command-line|commands\/[\w-]+)\.ts$/.test(file))).toBe(true)
    expect(from('hono').every(file => file.startsWith('core/daemon/'))).toBe(true)
  })
  it('show an import to this test in every file that has one', () => {
    expect(core.length).toBeGreaterThan(100)
    expect(plugins.length).toBeGreaterThan(20)
  })
})

describe('a tool', () => {
  it('is executed in one place, behind every hook, so that none can be passed by', () => {
    const using = (pattern: RegExp) => files('core').filter(file => pattern.test(readFileSync(join(root, file), 'utf8')))
    expect(using(/\btool\.execute\(fit/)).toEqual(['core/agent/tool-run.ts'])
    expect(using(/\btools\.use\(/)).toEqual(['core/agent/tool-run.ts'])
    expect(using(/\.execute\(/)).toEqual(['core/agent/tool-run.ts', 'core/agent/tools.ts'])
  })
})

describe('plugins', () => {
  it('import the door, packages, and files of their own folder', () => {
    const wrong = plugins.filter(({ file, target, specifier }) => specifier.startsWith('.') && (file.split('/').length < 3 || !target.startsWith(`${file.split('/').slice(0, 2).join('/')}/`)))
    expect(wrong.map(({ file, target }) => `${file} → ${target}`)).toEqual([])
  })
  it('have no default export', () => {
    expect(files('plugins').filter(file => /^export default/m.test(readFileSync(join(root, file), 'utf8')))).toEqual([])
  })
})

describe('the async context', () => {
  it('is one for the process, since each one that was entered slows every promise for good', () => {
    const made = [...files('core'), ...files('plugins')].filter(file => /new AsyncLocalStorage/.test(readFileSync(join(root, file), 'utf8')))
    expect(made).toEqual(['core/kernel/async-context.ts'])
  })
})
