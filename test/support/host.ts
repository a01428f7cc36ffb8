/**
 * A plugin host on a real kernel and a real module graph, over plugin files in a folder of its own. Plugins reach the test through `probe`, which 'harnessx' gives them here:
 * a plain object that the test and all versions share.
 */
import { basename } from 'node:path'
import { onTestFinished } from 'vitest'
import * as api from '../../core/api.js'
import { PluginHost, type EntrySpec, type HostEvents } from '../../core/loader/host.js'
import { ModuleImporter } from '../../core/loader/importer.js'
import { trustAll } from '../../core/loader/trust.js'
import { folder, type Folder } from './folder.js'
import { testKernel, type TestKernel } from './kernel.js'

export interface TestHost extends TestKernel, Folder {
  readonly host: PluginHost
  readonly importer: ModuleImporter
  readonly probe: Record<string, any>
  /** What happened, `loaded a`, `failed b`, in order. */
  readonly events: string[]
  /** Entries of these files, in this order; the id is the file's name. */
  entries(...files: (string | Partial<EntrySpec> & { file: string })[]): EntrySpec[]
  /** Reconciles to these entries. */
  load(...files: (string | Partial<EntrySpec> & { file: string })[]): ReturnType<PluginHost['reconcile']>
  /** Writes a file and reloads what it reaches. */
  save(file: string, text: string): ReturnType<PluginHost['reload']>
  states(): Record<string, string>
  info(id: string): ReturnType<PluginHost['list']>[number]
}

export function testHost(files: Readonly<Record<string, string>> = {}, { drainMs = 300, mountMs = 2000 } = {}): TestHost {
  const made = folder(files), base = testKernel()
  const probe: Record<string, any> = { seen: [] }
  const importer = new ModuleImporter({ builtins: { harnessx: { ...api, probe } }, trust: trustAll, base: made.path, log: base.kernel.log.of('importer') })
  const host = new PluginHost({ kernel: base.kernel, importer, dataDir: id => made.at(`data/${id}`), drainMs: () => drainMs, mountMs })
  const events: string[] = []
  for (const event of ['loaded', 'unloaded', 'reloaded', 'failed'] as const) host.on(event, (value: HostEvents[typeof event]) => { events.push(`${event} ${value.id}`) })
  host.on('leaked', leak => { base.leaks.push(leak) })
  onTestFinished(() => host.stop(500))

  const entries: TestHost['entries'] = (...list) => list.map((item, row) => {
    const { file, ...more } = typeof item === 'string' ? { file: item } : item
    const id = basename(file, '.ts')
    return { id, name: id, from: made.at(file), config: {}, enabled: true, required: false, row, place: path => ({ file: made.at('harness.config.yaml'), line: 10 + path.length }), ...more }
  })
  return {
    ...base, ...made, host, importer, probe, events, entries,
    load: (...list) => host.reconcile(entries(...list)),
    save: (file, text) => host.reload([made.write(file, text)]),
    states: () => Object.fromEntries(host.list().map(({ id, state }) => [id, state])),
    info: id => host.list().find(entry => entry.id === id)!,
  }
}

/** A plugin that judges with its name and version. */
export const judging = (name: string, more = ''): string => `
import { block, probe } from 'harnessx'
${more}
export function apply(ctx) { ctx.on('agent/pre-tool-use', () => { probe.seen.push('${name}') }) }
`
