/** A process under the built watchdog that, after an await, stays inside native code (a read that gets nothing): nobody is being called, and nothing answers. Arguments: its limit without a culprit, the folder for reports. */
import { readSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'

const [nobodyMs, logs] = process.argv.slice(2)
const beat = new BigInt64Array(new SharedArrayBuffer(8)), ints = () => new Int32Array(new SharedArrayBuffer(4))
Atomics.store(beat, 0, process.hrtime.bigint())
const workerData = { beat, debugged: ints(), seat: ints(), beatMs: 500, nobodyMs: Number(nobodyMs), who: 'stuck.who', quarantine: join(logs, 'quarantine.json'), logs, daemon: 'stuck' }
const worker = new Worker(new URL('../../../dist/watchdog.cjs', import.meta.url), { workerData })
const timer = setInterval(() => { Atomics.store(beat, 0, process.hrtime.bigint()) }, 500)
worker.once('online', async () => {
  await new Promise(done => { setTimeout(done, 1000) })
  process.stdout.write('stuck now\n', () => { readSync(0, Buffer.alloc(1)); clearInterval(timer) })
})
