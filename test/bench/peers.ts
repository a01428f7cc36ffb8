/**
 * Other agents beside this one: the same scripted server, the same task (one prompt), the same machine, the same run. Each is installed by npm, without its scripts, into a folder of the temporary
 * folder, where the next run finds it again. Cold start is from the spawn to the arrival of the first request; each has a home of its own, and what it fetches from elsewhere at its start is switched off.
 * What can't be measured is said with the reason, and left out.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { arch, platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startScriptedModel } from '../support/scripted-model.js'
import { begin, endGroup, residentMB } from './processes.js'
import { row, type Row } from './row.js'

const ROUNDS = 5, STARTS = 2
/** An install, a start, and the rest before memory is read. */
const INSTALL_MS = 600_000, START_MS = 60_000, REST_MS = 6000
const ROOT = fileURLToPath(new URL('../..', import.meta.url)), INSTALLS = join(tmpdir(), 'hx-bench-peers')
const PROMPT = 'say done'
const execute = promisify(execFile)

interface Peer {
  readonly name: string
  /** What npm installs; undefined is this checkout, packed. */
  readonly spec?: string
  /** Needs a newer Node than the one that runs this: a package of it. */
  readonly node?: string
  /** For one whose peer dependencies npm does not lay out within INSTALL_MS: packages in the versions of its release. Peers that are missing beside them are then added. */
  readonly beside?: readonly string[]
  /** Its command, inside its folder. */
  readonly program: readonly string[]
  /** One prompt, without a terminal; and a process that waits for prompts. */
  readonly once: readonly string[]
  readonly waits: readonly string[]
  readonly env: (home: string, url: string) => Readonly<Record<string, string>>
  /** Files in its home. */
  readonly files?: (url: string) => Readonly<Record<string, object>>
}

/** Stands for the Node that runs it. */
const NODE = 'node'
const modules = (...path: string[]): string => join('node_modules', ...path)
const PEERS: readonly Peer[] = [
  {
    name: 'hx', program: [NODE, modules('harnessx', 'dist', 'cli.cjs')], once: ['agent', '--ephemeral', PROMPT], waits: ['start', '--foreground'],
    env: (home, url) => ({ HX_HOME: join(home, '.hx'), OPENAI_BASE_URL: url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted' }),
  },
  {
    name: 'pi', spec: '@mariozechner/pi-coding-agent@0.73.1', program: [NODE, modules('@mariozechner', 'pi-coding-agent', 'dist', 'cli.js')],
    once: ['-p', '--no-session', '--provider', 'local', '--model', 'scripted', PROMPT], waits: ['--mode', 'rpc', '--no-session', '--provider', 'local', '--model', 'scripted'],
    env: home => ({ PI_CODING_AGENT_DIR: home, PI_OFFLINE: '1' }),
    files: url => ({ 'models.json': { providers: { local: { baseUrl: url, api: 'openai-completions', apiKey: 'k', models: [{ id: 'scripted' }] } } } }),
  },
  {
    name: 'opencode', spec: 'opencode-ai@1.18.33', program: [modules(`opencode-${platform()}-${arch()}`, 'bin', 'opencode')], once: ['run', '--model', 'local/scripted', PROMPT], waits: ['serve', '--port', '0'],
    env: home => ({ OPENCODE_CONFIG: join(home, 'opencode.json'), OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' }),
    files: url => ({ 'opencode.json': { provider: { local: { npm: '@ai-sdk/openai-compatible', name: 'local', options: { baseURL: url, apiKey: 'k' }, models: { scripted: { name: 'scripted' } } } } } }),
  },
  {
    name: 'dsh', spec: '@deepseek-ai/dsh@0.1.0-rc.8', node: `node-${platform()}-${arch()}@24.21.0`, program: [NODE, modules('@deepseek-ai', 'dsh', 'lib', 'bin.js')],
    beside: ['cordis@4.0.1', 'cordis-plugin-hmr@1.0.16', 'cordis-plugin-include@1.0.6', 'cordis-plugin-loader@1.0.2', 'cordis-plugin-timer@1.1.3', 'cordis-plugin-group@1.0.1'].map(name => `@deepseek-ai/${name}`),
    once: ['--profile', 'headless', PROMPT], waits: ['--profile', 'web', '--no-open', '--port', '38080'],
    env: (home, url) => ({ DSH_HOME: join(home, '.dsh'), DSH_AGENTS_HOME: join(home, '.agents'), DEEPSEEK_BASE_URL: url, DEEPSEEK_API_KEY: 'k' }),
  },
]

/** A peer that is installed, with a home and a workspace of its own. */
interface Settled { readonly peer: Peer; readonly program: readonly string[]; /** Of the peer, and of its Node where that is another. */ readonly version: string; readonly sizeMB: number; readonly packages: number; readonly env: NodeJS.ProcessEnv; readonly work: string }

export async function benchPeers(): Promise<Row[]> {
  let arrived = () => {}
  const server = await startScriptedModel(() => { arrived(); return { text: 'done' } }), root = mkdtempSync(join(tmpdir(), 'hx-bench-homes-')), all: Settled[] = []
  /** Milliseconds from the spawn to the first request, when the process has ended. */
  const cold = async ({ peer, program, env, work }: Settled): Promise<number> => {
    const begun = performance.now(), child = begin([...program, ...peer.once], env, work), gone = once(child, 'exit')
    let said = ''
    for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', (text: string) => { said = (said + text).slice(-2000) })
    child.stdin!.end()
    const request = new Promise<number>(resolve => { arrived = () => { resolve(performance.now() - begun) } })
    const ms = await Promise.race([request, gone.then(() => undefined), sleep(START_MS, undefined, { ref: false })])
    await Promise.race([gone, sleep(5000, undefined, { ref: false })])
    endGroup(child)
    if (ms === undefined) throw new Error(`no request came; it said: ${said.trim()}`)
    return ms
  }
  try {
    for (const peer of PEERS) await unlessItFails(peer.name, async () => {
      const settled = await settle(peer, root, server.url)
      await cold(settled)                                     // what a first start makes in its home is there, files are warm
      all.push(settled)
    })
    const bare = { PATH: process.env['PATH'] }, nodes: number[] = [], colds = new Map<Settled, number[]>(all.map(one => [one, []]))
    for (let round = 0; round < ROUNDS; round++) {
      const begun = performance.now()
      await once(begin([process.execPath, '-e', '0'], bare, root), 'exit')
      nodes.push(performance.now() - begun)
      for (const one of all) await unlessItFails(one.peer.name, async () => { colds.get(one)!.push(await cold(one)) })
    }
    const node = row('node -e 0', 'ms', nodes), rows: Row[] = [node]
    for (const [one, times] of colds) if (times.length > 0) rows.push(row(`${label(one)}: to the first request`, 'ms', times, node))
    const still = row('a bare node, waiting', 'MB', await idle([process.execPath, '-e', 'process.stdin.resume()'], bare, root))
    rows.push(still)
    for (const one of all) await unlessItFails(one.peer.name, async () => { rows.push(row(`${label(one)} ${one.peer.waits.slice(0, 2).join(' ')}: resident`, 'MB', await idle([...one.program, ...one.peer.waits], one.env, one.work), still)) })
    const size = all[0] && row(`${label(all[0])}: installed`, 'MB', [all[0].sizeMB])
    if (size) rows.push(size, ...all.slice(1).map(one => row(`${label(one)}: installed`, 'MB', [one.sizeMB], size)))
    for (const one of all) rows.push(row(`${label(one)}: packages`, 'packages', [one.packages]))
    return rows
  } finally {
    await server.close()
    rmSync(root, { recursive: true, force: true, maxRetries: 10 })
  }
}

const label = ({ peer, version }: Settled): string => `${peer.name} ${version}`
async function unlessItFails(name: string, work: () => Promise<void>): Promise<void> {
  try { await work() } catch (error) { console.error(`${name}: not measured: ${error instanceof Error ? error.message : String(error)}`) }
}

/** Resident MB of the process and its children, at rest. */
async function idle(command: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<number[]> {
  const samples: number[] = []
  for (let start = 0; start < STARTS; start++) {
    const child = begin(command, env, cwd), gone = once(child, 'exit')
    for (const stream of [child.stdout!, child.stderr!]) stream.resume()
    const ended = await Promise.race([gone.then(() => true), sleep(REST_MS, false)])
    const resident = residentMB(child)
    endGroup(child)
    if (ended) throw new Error(`${command.join(' ')} ended with ${child.exitCode} in place of waiting`)
    await gone
    samples.push(resident)
  }
  return samples
}

async function settle(peer: Peer, root: string, url: string): Promise<Settled> {
  const folder = join(INSTALLS, peer.name), home = join(root, peer.name), work = join(home, 'work')
  mkdirSync(work, { recursive: true })
  writeFileSync(join(work, 'README.md'), '# a project\n')
  for (const [name, value] of Object.entries(peer.files?.(url) ?? {})) writeFileSync(join(home, name), JSON.stringify(value))
  const name = await install(peer.spec, folder, peer.beside)
  let node = process.execPath, needs = ''
  if (peer.node !== undefined) {
    const place = join(INSTALLS, 'node')
    node = join(place, 'node_modules', await install(peer.node, place), 'bin', 'node')
    needs = ` on ${(await execute(node, ['--version'])).stdout.trim()}`
  }
  const { version } = JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')) as { version: string }
  const lock = JSON.parse(readFileSync(join(folder, 'node_modules', '.package-lock.json'), 'utf8')) as { packages: object }
  const { stdout } = await execute('du', ['-sk', join(folder, 'node_modules')])
  const program = peer.program.map(part => part === NODE ? node : part.startsWith('node_modules') ? join(folder, part) : part)
  return { peer, program, version: version + needs, sizeMB: Number.parseInt(stdout) / 1024, packages: Object.keys(lock.packages).length, env: { PATH: process.env['PATH'], HOME: home, ...peer.env(home, url) }, work }
}
/** Installs, `undefined` being this checkout, unless that very version stands there. Gives the name of the package. */
async function install(spec: string | undefined, folder: string, beside: readonly string[] = []): Promise<string> {
  const at = spec?.lastIndexOf('@') ?? 0, name = spec?.slice(0, at) ?? 'harnessx', present = join(folder, 'node_modules', name, 'package.json')
  if (spec !== undefined && existsSync(present) && (JSON.parse(readFileSync(present, 'utf8')) as { version: string }).version === spec.slice(at + 1)) return name
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const npm = (args: readonly string[], cwd: string) => execute('npm', args, { cwd, timeout: INSTALL_MS })
  let wanted = spec
  if (wanted === undefined) {
    await npm(['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], ROOT)
    wanted = join(folder, readdirSync(folder).find(file => file.endsWith('.tgz'))!)
  }
  const add = (packages: readonly string[]) => npm(['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', ...beside.length > 0 ? ['--legacy-peer-deps'] : [], ...packages], folder)
  await add([wanted, ...beside])
  for (let round = 0; beside.length > 0 && round < 5; round++) {
    const missing = missingPeers(join(folder, 'node_modules'))
    if (missing.length === 0) break
    await add(missing)
  }
  return name
}
/** What the packages of a folder need beside them, and lack. */
function missingPeers(modulesFolder: string): string[] {
  const names = readdirSync(modulesFolder).flatMap(name => name.startsWith('@') ? readdirSync(join(modulesFolder, name)).map(one => join(name, one)) : [name]), missing = new Map<string, string>()
  for (const name of names) {
    const file = join(modulesFolder, name, 'package.json')
    if (!existsSync(file)) continue
    const { peerDependencies = {}, peerDependenciesMeta = {} } = JSON.parse(readFileSync(file, 'utf8')) as { peerDependencies?: Record<string, string>; peerDependenciesMeta?: Record<string, { optional?: boolean }> }
    for (const [peer, range] of Object.entries(peerDependencies)) if (!peerDependenciesMeta[peer]?.optional && !existsSync(join(modulesFolder, peer))) missing.set(peer, range)
  }
  return [...missing].map(([peer, range]) => `${peer}@${range}`)
}
