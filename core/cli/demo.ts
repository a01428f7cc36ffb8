/**
 * `hx demo`: the main job on the embedded offline model, in a folder of its own that is gone afterwards. No key, no network, nothing of the user's is touched.
 * A turn, a blocked call, an ask that nobody answers; then a plugin switched off in the YAML and one edited, live. Everything shown is a real run.
 */
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { App, type AppEvent } from '../app.js'
import { HarnessError } from '../errors.js'
import { Log } from '../kernel/log.js'
import { trustFolders } from '../loader/trust.js'
import { places } from '../places.js'
import { inProcess } from './in-process.js'
import type { Io } from './io.js'
import { printLines, printText } from './agent.js'
import { onSignals } from './signals.js'

const WAIT_MS = 10_000

const FILES: Readonly<Record<string, string>> = {
  'README.md': '# Ferry\n\nFerry carries parcels between two harbours.\n\nRun it with `node src/index.js`.\n',
  'src/index.js': "import { load } from './cargo.js'\n\nconsole.log(load(['letters', 'apples']))\n",
  'src/cargo.js': "export const load = parcels => parcels.join(' and ')\n",
  'test.txt': 'still here\n',
  'harness.config.yaml': `# The order of the rows is the order of their handlers.
agent: { model: offline }
plugins:
  - hook-log
  - name: permission
    required: true
  - stats
  - greeting                # plugins/greeting.ts, beside this file
  - tool-fs
  - tool-bash
  - model-offline
`,
  'plugins/greeting.ts': `import type { Context } from 'harnessx'

export const name = 'greeting'
export function apply(ctx: Context) {
  ctx.on('agent/turn-start', () => { console.error('[greeting] hello') })
}
`,
}

const TASKS = [
  { task: 'Read README.md and list src/*.js', about: 'A turn: two tools run, plugins watch every hook.' },
  { task: 'Try to run sudo ls', about: 'A call that the permission plugin blocks: the model reads why and stops trying.' },
  { task: 'Delete the file test.txt', about: 'A call that needs a yes: nobody can be asked here, so it is refused.' },
]

export async function demo(io: Io): Promise<number> {
  const signals = onSignals(), print = io.json ? printLines : printText
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'hx-demo-')))
  const config = join(folder, 'harness.config.yaml')
  let app: App | undefined
  try {
    for (const [file, text] of Object.entries(FILES)) {
      await mkdir(dirname(join(folder, file)), { recursive: true })
      await writeFile(join(folder, file), text)
    }
    const log = new Log()
    log.sink(io.logSink())
    const here = places({ ...io.env, HX_HOME: join(folder, '.hx') })
    app = await App.start({ places: here, located: { file: config, layers: [config], kind: 'flag' }, cwd: folder, env: io.env, trust: trustFolders([folder, here.installation.root]), log, watch: true })
    const started = app
    const client = inProcess(started)
    signals.first = () => { for (const session of started.running()) started.abort(session, 'stopped') }
    title(io, 'hx demo', 'the embedded offline model follows fixed rules: no key, no network. Your files are not touched.')

    for (const { task, about } of TASKS) {
      title(io, `hx agent "${task}"`, about)
      await print(await client.run({ prompt: task, cwd: folder }), io)
      if (signals.code !== undefined) return signals.code
    }
    io.note(io.paintNote('dim', `test.txt: ${JSON.stringify((await readFile(join(folder, 'test.txt'), 'utf8')).trim())}`))

    title(io, 'a plugin switched off in harness.config.yaml, while it runs', '"- stats" becomes "- { name: stats, enabled: false }"; only that plugin is unloaded.')
    const off = seen(started, 'unloaded', 'stats')
    await writeFile(config, FILES['harness.config.yaml']!.replace('- stats', '- { name: stats, enabled: false }'))
    await off
    io.note('unloaded: stats')

    title(io, 'plugins/greeting.ts edited and saved, while it runs', '"hello" becomes "good day"; the next turn runs the new code.')
    const plugin = join(folder, 'plugins/greeting.ts')
    const reloaded = seen(started, 'reloaded', 'greeting')
    await writeFile(plugin, FILES['plugins/greeting.ts']!.replace('hello', 'good day'))
    io.note(`reloaded: greeting, in ${(await reloaded).ms.toFixed(1)} ms`)
    await print(await client.run({ prompt: 'Read the file README.md', cwd: folder }), io)

    title(io, 'the same file saved with a mistake in it', 'The old version keeps running, and the mistake is named.')
    const failed = seen(started, 'failed', 'greeting')
    await writeFile(plugin, FILES['plugins/greeting.ts']!.replace('{ console', '{{ console'))
    await failed                                             // the log says what and where
    title(io, 'now on your own files', 'hx agent --offline "Read README.md"\n  hx agent "…"                           with DEEPSEEK_API_KEY or OPENAI_API_KEY set\n  hx init                                a config of your own; hx --help for the rest')
    return 0
  } finally {
    await app?.stop()
    await rm(folder, { recursive: true, force: true })
    signals.off()
  }
}

function title(io: Io, heading: string, about: string): void {
  io.note(`\n${io.paintNote('bold', `▌ ${heading}`)}\n${io.paintNote('dim', `  ${about}`)}`)
}
/** The next event of the app of this type about this plugin. */
function seen<T extends 'unloaded' | 'reloaded' | 'failed'>(app: App, type: T, id: string): Promise<AppEvent & { type: T }> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => { off(); reject(new HarnessError('internal', `"${id}" was not ${type} within ${WAIT_MS} ms`)) }, WAIT_MS)
    const off = app.on(event => {
      if (event.type !== type || !('id' in event) || event.id !== id) return
      clearTimeout(timer)
      off()
      resolve(event as AppEvent & { type: T })
    })
  })
}
