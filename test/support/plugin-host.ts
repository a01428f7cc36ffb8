/**
 * Shipped plugins under the kit that authors have (`harnessx/testing`), closed when the test ends: what a plugin leaves outside its ctx fails its test.
 * The model plays the replies of a run, then says "done".
 */
import { onTestFinished } from 'vitest'
import { createTestHost, type PluginRow, type TestHost, type TestRun } from 'harnessx/testing'
import type { CommandAnswer, Context, RunInput } from 'harnessx'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

/** One reply: text, or calls of tools (`arguments` as an object, or a raw string). */
export type ScriptedTurn = string | readonly { readonly name: string; readonly arguments: object | string }[]
export type Row = PluginRow & { readonly module: object }
export type Ran = TestRun

export interface PluginHost extends Omit<TestHost, 'run' | 'reload' | 'folder' | 'command'> {
  readonly folder: { readonly path: string; at(name: string): string; write(name: string, text: string): string }
  /** What was logged, without what the host says of each load. */
  readonly lines: TestHost['log']
  /** One turn: the model says `replies`, then "done". */
  run(replies: readonly ScriptedTurn[], more?: Partial<RunInput>): Promise<Ran>
  /** What the model reads for one call of a tool. */
  call(name: string, args: object | string, more?: Partial<RunInput>): Promise<Ran & { readonly read: string }>
  /** What `/name args` says. */
  command(name: string, args: string, session: string): Promise<CommandAnswer | undefined>
  /** Another version of a row, or another config. */
  reload(id: string, row: Row): Promise<void>
  unload(id: string): Promise<void>
  /** What is registered, by whom: `hook id`, `tool id`. */
  registered(): readonly string[]
}

const USAGE = { inputTokens: 10, outputTokens: 5 }

export async function pluginHost(rows: readonly Row[], options: { files?: Readonly<Record<string, string>>; protectedPaths?: (cwd: string) => readonly string[] } = {}): Promise<PluginHost> {
  let script: ScriptedTurn[] = []
  let present: readonly PluginRow[] = rows
  const host = await createTestHost({ plugins: rows, ...options, replies: () => {
    const reply = script.shift() ?? 'the script is exhausted'
    return typeof reply === 'string' ? { text: reply, usage: USAGE } : { calls: reply, usage: USAGE }
  } })
  onTestFinished(() => host.close())
  const idOf = (row: PluginRow) => row.id ?? row.name ?? (row.module as { name: string }).name
  if (options.protectedPaths) {                                        // a host protects what its rows name, also of rows that are switched off
    present = [...rows, ...options.protectedPaths(host.folder).map((from, place) => ({ name: `protected-${place}`, from, enabled: false }))]
    await host.configure(present)
  }
  const run: PluginHost['run'] = async (replies, more = {}) => {
    script.push(...replies, 'done')
    try { return await host.run(more.prompt ?? 'go', more) } finally { script = [] }
  }
  return {
    ...host, run,
    get lines() { return host.log.filter(({ message }) => !/^plugin "[^"]+" (?:un|re)?loaded/.test(message)) },
    folder: { path: host.folder, at: name => join(host.folder, name), write: (name, text) => host.write(name, text) },
    call: async (name, args, more) => {
      const ran = await run([[{ name, arguments: args }]], more)
      return { ...ran, read: ran.results.at(-1) ?? '' }
    },
    command: async (name, args, session) => {
      const { text, prompt } = await host.command(name, args, session)
      return prompt === undefined ? text : { prompt }
    },
    reload: async (id, row) => {
      const changed = !isDeepStrictEqual(row.config ?? {}, present.find(one => idOf(one) === id)?.config ?? {})
      present = present.map(one => idOf(one) === id ? { ...one, ...row } : one)
      const { failed } = changed ? await host.configure(present) : await host.reload(id, row.module)
      if (failed.length > 0) throw new Error(failed.map(({ message }) => message).join('; '))
    },
    unload: async id => {
      present = present.filter(row => idOf(row) !== id)
      await host.configure(present)
    },
    registered: () => [...host.hooks().flatMap(({ hook, handlers }) => handlers.map(({ plugin }) => `${hook} ${plugin}`)), ...host.tools().map(({ name, plugin }) => `${name} ${plugin}`), ...host.commands().map(({ name, plugin }) => `/${name} ${plugin}`)].sort(),
  }
}

/** A tool that gives what it is told to, for tests of what comes before and after. */
export const echoTool = (give: (args: Record<string, unknown>) => unknown, { name = 'echo', readOnly = false } = {}): Row => ({
  id: `tool-${name}`,
  module: {
    name: `tool-${name}`,
    apply(ctx: Context) { ctx.tools.register({ name, description: 'Gives what the test says.', readOnly, parameters: { type: 'object' }, execute: (args: Record<string, unknown>) => give(args) as string } as never) },
  },
})
