import inspector from 'node:inspector'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../support/hx.js'
import { startApp } from '../support/app.js'

interface Told { attached?: true; placed?: string; failed?: string; stopped?: { source?: string; line?: number; function: string } }

/** Types above the line that stops, so that it stands elsewhere in what runs. */
const source = (version: number, before: string) => `import { type Context } from 'harnessx'
interface Counted { readonly n: number }
${before}
export function apply(ctx: Context): void {
  ctx.tools.register({
    name: 'count', description: 'Counts.', parameters: { type: 'object' },
    execute(): string {
      const counted: Counted = { n: 4 + ${version} }
      return String(counted.n)                                          // stops here
    },
  })
}
`
describe('a breakpoint in the TypeScript file of a plugin', () => {
  it('is hit before and after a reload, at its line', async () => {
    inspector.open(0, '127.0.0.1')
    onTestFinished(() => { inspector.close() })
    const before = 'type Unused =\n  | 1\n  | 2'
    let asked = 0
    const running = await startApp({ files: {}, config: 'plugins: [counter]\n', script: () => asked++ % 2 === 0 ? { calls: [{ name: 'count' }] } : 'done' })
    onTestFinished(() => running.close())
    const file = running.at('plugins/counter.ts'), line = source(1, before).split('\n').findIndex(text => text.includes('stops here')) + 1

    const told: Told[] = []
    const attached = new Worker(fileURLToPath(new URL('../support/processes/debugger.mjs', import.meta.url)), { workerData: { source: pathToFileURL(file).href, line } })
    onTestFinished(async () => {
      attached.postMessage('end')
      await new Promise(resolve => { attached.once('exit', resolve) })
    })
    attached.on('message', (message: Told) => { told.push(message) })
    await until(() => told.some(one => one.attached))

    for (const version of [1, 2, 3]) {
      running.write('plugins/counter.ts', source(version, before))
      await until(() => told.filter(one => one.placed !== undefined || one.failed !== undefined).length === version)
      await until(() => running.app.plugins().some(plugin => plugin.state === 'active' && plugin.version === version))
      const { events } = await running.run({ prompt: 'count' })
      expect(events.flatMap(event => event.type === 'tool-result' ? [event.content] : [])).toEqual([String(4 + version)])
      await until(() => told.filter(one => one.stopped).length === version)
    }
    expect(told.flatMap(one => one.stopped ?? [])).toEqual(Array.from({ length: 3 }, () => ({ source: pathToFileURL(file).href, line, function: 'execute' })))
    expect(told.flatMap(one => one.failed ?? [])).toEqual([])
  })
})
