/**
 * `hx init`: makes a folder a place for hx: a harness.config.yaml with the shipped rows to switch and change, types for an editor, and lines of .gitignore for what must not be shared. Never over what is there.
 * What it wrote is trusted, unless something stands there already that would run or be read with it.
 */
import { existsSync } from 'node:fs'
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HarnessError, notStored } from '../errors.js'
import { makeFolder } from '../kernel/folder.js'
import { TrustStore } from '../loader/trust-store.js'
import { CONFIG_NAME } from '../places.js'
import { find } from './connect.js'
import type { Io } from './io.js'
import { linkHost } from './link-host.js'
import { otherHx } from './other-hx.js'

export async function init(io: Io): Promise<number> {
  const { cwd, places } = find(io, true)
  const file = join(cwd, CONFIG_NAME)
  const others = ['plugins', '.env'].filter(name => existsSync(join(cwd, name)))
  const linked = !existsSync(file) && linkHost(cwd, places.installation.root) === 'linked'      // first: the config names the schema in it
  const text = withSchema(await readFile(places.installation.config, 'utf8'), schemaReference(cwd, places.installation.root))
  try {
    await writeFile(file, text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      await rm(file, { force: true })                          // a torn one would be a config that is there already
      throw notStored(`"${file}" could not be written`, error, file)
    }
    throw new HarnessError('usage', `"${file}" is there already and stays as it is; edit it, or see "hx config check"`, { place: { file } })
  }
  const wrote = [file, ...await typesFor(cwd), ...await ignoredIn(cwd)]
  const trusted = others.length === 0
  if (trusted) await new TrustStore(places.trust).add(file)
  if (io.json) io.line({ file, trusted, wrote, linked })
  else io.say(`${wrote.map(one => `wrote ${one}\n`).join('')}${linked ? 'linked node_modules/harnessx to this installation, for types and tests of plugins\n' : ''}next: ${trusted ? '' : `hx trust     (${others.join(' and ')} stood here before, so have a look at what runs)\n      `}hx plugins new my-plugin\n      hx agent "TASK"`)
  const above = configAbove(cwd)
  if (above !== undefined && above !== places.userConfig) io.note(io.paintNote('yellow', `hx: ${above} counts no more in this folder: the nearest config is the one of a project`))
  const other = otherHx(io.env['PATH'], places.installation.root)
  if (other !== undefined) io.note(io.paintNote('yellow', `hx: another hx comes first on the PATH: ${other}; see "hx doctor"`))
  return 0
}

function configAbove(folder: string): string | undefined {
  const above = dirname(folder), file = join(above, CONFIG_NAME)
  return above === folder ? undefined : existsSync(file) ? file : configAbove(above)
}

/** For plugins alone, so that it gets in the way of no other code of the project. */
async function typesFor(cwd: string): Promise<string[]> {
  const file = join(cwd, 'plugins', 'tsconfig.json')
  if (existsSync(file)) return []
  makeFolder(dirname(file))
  await writeFile(file, `${JSON.stringify({ compilerOptions: { target: 'es2023', module: 'esnext', moduleResolution: 'bundler', strict: true, noEmit: true, skipLibCheck: true } }, null, 2)}\n`, { flag: 'wx' })
  return [file]
}
async function ignoredIn(cwd: string): Promise<string[]> {
  const file = join(cwd, '.gitignore'), text = existsSync(file) ? await readFile(file, 'utf8') : ''
  const lines = text.split('\n').map(line => line.trim().replace(/^\//, '').replace(/\/$/, ''))
  const missing = ['node_modules/', '.env'].filter(line => !lines.includes(line.replace(/\/$/, '')))
  if (missing.length === 0) return []
  await appendFile(file, `${text === '' || text.endsWith('\n') ? '' : '\n'}${missing.join('\n')}\n`)
  return [file]
}

/** What an editor checks the file against: the copy beside the project when there is one, so that the file can be shared. */
function schemaReference(cwd: string, installation: string): string {
  const local = 'node_modules/harnessx/dist/schema.json'
  return existsSync(join(cwd, local)) ? `./${local}` : pathToFileURL(join(installation, 'dist/schema.json')).href
}
const HEAD = '# What hx runs here. The order of the rows is the order of their handlers; put a file into plugins/ beside this one and add its name.\n# "hx config check" names mistakes, "hx plugins" says what runs.\n'
const withSchema = (config: string, reference: string): string => `# yaml-language-server: $schema=${reference}\n${HEAD}${config.replace(/^(?:#.*\n)+/, '')}`
