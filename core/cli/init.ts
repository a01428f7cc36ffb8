/**
 * `hx init`: writes a harness.config.yaml in the folder, with the shipped rows to switch and change. Never over one that is there.
 * What it wrote is trusted, unless something stands there already that would run or be read with it.
 */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HarnessError } from '../errors.js'
import { TrustStore } from '../loader/trust-store.js'
import { CONFIG_NAME } from '../places.js'
import { find } from './connect.js'
import type { Io } from './io.js'

export async function init(io: Io): Promise<number> {
  const { cwd, places } = find(io, true)
  const file = join(cwd, CONFIG_NAME)
  const text = withSchema(await readFile(places.installation.config, 'utf8'), schemaReference(cwd, places.installation.root))
  try {
    await writeFile(file, text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new HarnessError('usage', `"${file}" is there already and stays as it is; edit it, or see "hx config check"`, { place: { file } })
  }
  const others = ['plugins', '.env'].filter(name => existsSync(join(cwd, name)))
  const trusted = others.length === 0
  if (trusted) await new TrustStore(places.trust).add(file)
  if (io.json) io.line({ file, trusted })
  else io.say(`wrote ${file}\nnext: ${trusted ? '' : `hx trust     (${others.join(' and ')} stood here before, so have a look at what runs)\n      `}hx plugins\n      hx agent "TASK"`)
  return 0
}

/** What an editor checks the file against: the copy beside the project when there is one, so that the file can be shared. */
function schemaReference(cwd: string, installation: string): string {
  const local = 'node_modules/harnessx/dist/schema.json'
  return existsSync(join(cwd, local)) ? `./${local}` : pathToFileURL(join(installation, 'dist/schema.json')).href
}
const HEAD = '# What hx runs here. The order of the rows is the order of their handlers; put a file into plugins/ beside this one and add its name.\n# "hx config check" names mistakes, "hx plugins" says what runs.\n'
const withSchema = (config: string, reference: string): string => `# yaml-language-server: $schema=${reference}\n${HEAD}${config.replace(/^(?:#.*\n)+/, '')}`
