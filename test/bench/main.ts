/**
 * `npm run bench [-- name…] [--json]`: every figure beside its baseline, measured in the same run. Prints median, spread and ratio; nothing here can fail a build.
 */
import { table } from '../../core/cli/terminal.js'
import type { Row } from './row.js'

const BENCHES: Readonly<Record<string, () => Promise<() => Promise<Row[]>>>> = {
  dispatch: async () => (await import('./dispatch.js')).benchDispatch,
  bash: async () => (await import('./bash.js')).benchBash,
  start: async () => (await import('./start.js')).benchStart,
  reload: async () => (await import('./reload.js')).benchReload,
  loaders: async () => (await import('./loaders.js')).benchLoaders,
  stream: async () => (await import('./stream.js')).benchStream,
  sessions: async () => (await import('./sessions.js')).benchSessions,
  history: async () => (await import('./history.js')).benchHistory,
  log: async () => (await import('./log.js')).benchLog,
  memory: async () => (await import('./memory.js')).benchMemory,
  peers: async () => (await import('./peers.js')).benchPeers,
}
/** Takes minutes and a registry: runs only when it is named. */
const ONLY_NAMED = 'peers'
const args = process.argv.slice(2)
const json = args.includes('--json')
if (args.includes('--help')) {
  console.log(`npm run bench [-- name…] [--json]\nEvery figure beside its baseline, measured in the same run: ${Object.keys(BENCHES).join(', ')}.\nWithout a name all but ${ONLY_NAMED}, which takes minutes and a registry.`)
  process.exit(0)
}
process.stdout.once('error', () => { process.exit(0) })      // whoever read it has seen enough
const names = args.filter(arg => !arg.startsWith('-'))
const unknown = names.find(name => !(name in BENCHES))
if (unknown !== undefined) {
  console.error(`there is no bench "${unknown}"; there are ${Object.keys(BENCHES).join(', ')}`)
  process.exit(2)
}
for (const name of names.length ? names : Object.keys(BENCHES).filter(name => name !== ONLY_NAMED)) {
  const rows = await (await BENCHES[name]!())()
  if (json) { for (const row of rows) console.log(JSON.stringify({ bench: name, ...row })); continue }
  console.log(`\n${name}`)
  console.log(table([['', 'MEDIAN', 'SPREAD', 'RATIO', 'BASELINE'], ...rows.map(row => [row.name, `${row.median.toPrecision(3)} ${row.unit}`, `${row.low.toPrecision(3)}–${row.high.toPrecision(3)}`, row.ratio === undefined ? '' : `${row.ratio.toFixed(2)}×`, row.baseline ?? ''])]))
}
process.exit(0)
