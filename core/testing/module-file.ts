/**
 * A plugin that the test has imported itself, as a file that the host can load: it reaches the module through `globalThis`, since both live in one process.
 * So a test runner's own handling of modules (TypeScript, mocks, coverage, breakpoints) stays in force.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const EXPORTS = ['name', 'apply', 'inject', 'provides', 'Config', 'reload', 'reconfigure', 'default']
const KEY = Symbol.for('harnessx.testing')

let made = 0
const modules = (): Map<string, object> => ((globalThis as { [KEY]?: Map<string, object> })[KEY] ??= new Map())

/** Writes the file into `folder` and gives its path. */
export function moduleFile(folder: string, module: object, path = join(folder, `module-${++made}.mjs`)): string {
  modules().set(path, module)
  const exports = EXPORTS.filter(name => (module as Record<string, unknown>)[name] !== undefined)
  writeFileSync(path, `const module = globalThis[Symbol.for('harnessx.testing')].get(${JSON.stringify(path)})\n${exports.map(name => name === 'default' ? 'export default module.default\n' : `export const ${name} = module.${name}\n`).join('')}`)
  return path
}
/** Lets go of the modules of a folder. */
export function forgetModules(folder: string): void {
  for (const path of modules().keys()) if (path.startsWith(folder)) modules().delete(path)
}
