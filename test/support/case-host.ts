/**
 * A host for one case: plugins written down in the test, each in a file of its own, on the real host with a scripted model. Closed when the test ends.
 * A plugin tells the test what it saw with `say(…)`, in the order in which it happened.
 */
import { onTestFinished } from 'vitest'
import { createTestHost, type PluginRow, type TestHost, type TestHostOptions } from '../../core/testing.js'
import { folder } from './folder.js'

/** Beside the file names of shipped plugins: bodies of `apply(ctx, config)`, or whole modules, which have an `export`. */
export interface CaseOptions extends Omit<TestHostOptions, 'plugins'> {
  readonly plugins: Readonly<Record<string, string | (Omit<PluginRow, 'from'> & { readonly code: string })>>
  /** Names of shipped plugins, after the others. */
  readonly shipped?: readonly (string | PluginRow)[]
}
export interface CaseHost extends TestHost {
  /** What plugins said, in order. */
  said(): readonly string[]
  /** Rows of the plugins, for `configure`. */
  readonly rows: readonly (string | PluginRow)[]
  /** Saves other code for a plugin; nothing reloads it by itself. */
  save(id: string, code: string): string
  readonly pluginFolder: string
}

const TOLD = 'case: '

export async function caseHost({ plugins, shipped = [], ...options }: CaseOptions): Promise<CaseHost> {
  const files = folder()
  const save = (id: string, code: string) => files.write(`${id}.ts`, moduleOf(id, code))
  const rows = Object.entries(plugins).map(([id, given]): PluginRow => {
    const { code, ...row } = typeof given === 'string' ? { code: given } : given
    return { ...row, from: save(id, code) }
  })
  const all = [...rows, ...shipped]
  const host = await createTestHost({ mayFail: true, ...options, plugins: all })
  onTestFinished(() => host.close())
  return { ...host, rows: all, save, pluginFolder: files.path, said: () => host.log.flatMap(({ message }) => message.startsWith(TOLD) ? [message.slice(TOLD.length)] : []) }
}

const moduleOf = (id: string, code: string): string => /^export /m.test(code) ? code : `
import * as harnessx from 'harnessx'
const { z, accept, allow, answer, ask, block, enter, proceed, reject, send, stop } = harnessx
export const name = '${id}'
export async function apply(ctx: harnessx.Context, config: any) {
  const say = (...words: unknown[]) => { ctx.logger.info('${TOLD}' + words.map(word => typeof word === 'string' ? word : JSON.stringify(word)).join(' ')) };
  const sleep = (ms: number) => new Promise(done => { ctx.setTimeout(done, ms) });
${code}
}
`

/** A tool that says that it ran, as source. */
export const tool = (name: string, execute = `'ran'`, more = ''): string =>
  `ctx.tools.register({ name: '${name}', description: 'a tool of the test', parameters: { type: 'object' }, ${more} execute: async (args: any, run: any) => { say('${name} ran', args); return ${execute} } } as never)\n`
