/** The client of a daemon that is hard to reach. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connectDaemon, mute } from '../../core/cli/socket-client.js'
import { endpointOf, writeToken } from '../../core/daemon/endpoint.js'
import { HEADERS, PROTOCOL } from '../../core/daemon/protocol.js'
import { writeMark } from '../../core/daemon/run-mark.js'
import { VERSION } from '../../core/version.js'
import { folder } from '../support/folder.js'
import { until } from '../support/hx.js'

/** Lets two wait to be taken in, takes nobody in until a file is there, then answers all. */
const CROWDED_DOOR = `
  const [socket, open, protocol, body] = process.argv.slice(1)
  require('node:http').createServer((request, response) => { response.writeHead(200, { ${JSON.stringify(HEADERS.protocol)}: protocol }).end(body) }).listen({ path: socket, backlog: 1 }, () => {
    process.stdout.write('listening', () => { while (!require('node:fs').existsSync(open)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10) })
  })`

describe.runIf(process.platform === 'linux')('the client of a daemon', () => {
  it('comes again when so many come at once that the system turns some away', async () => {
    const place = folder(), endpoint = endpointOf(place.path, 'config')
    await writeToken(endpoint)
    const door = spawn(process.execPath, ['-e', CROWDED_DOOR, endpoint.socket, place.at('open'), String(PROTOCOL), JSON.stringify({ version: VERSION, sessions: 0 })], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(async () => { door.kill('SIGKILL'); await once(door, 'exit') })
    await once(door.stdout, 'data')
    let answered = 0
    const clients = Promise.all(Array.from({ length: 12 }, async () => { const client = await connectDaemon(endpoint, { anyVersion: false, note: () => {} }); answered++; return client }))
    clients.catch(() => {})                                  // read below
    await until(() => turnedAway(endpoint.socket))
    expect(answered).toBe(0)
    place.write('open', '')
    expect((await clients).every(client => client !== undefined)).toBe(true)
  })
})

describe('a daemon that says nothing', () => {
  it('is named by its process, with what ends it, as far as that is known', async () => {
    const endpoint = endpointOf(folder().path, 'config')
    expect((await mute(endpoint, 10_000)).message).toBe('the daemon of this config does not answer within 10 s: it is stopped, or something holds it up without end; end its process and start it again')
    await writeToken(endpoint)
    await writeMark(endpoint, { pid: 4711, version: VERSION, trust: false, foreground: false })
    expect((await mute(endpoint, 10_000)).message).toMatch(/^the daemon of this config \(pid 4711\) .*; end its process \("kill -9 4711"\) and start it again$/)
  })
})

function turnedAway(socket: string): Promise<boolean> {
  return new Promise(resolve => {
    const knock = connect(socket, () => { knock.destroy(); resolve(false) }).on('error', (error: NodeJS.ErrnoException) => { resolve(error.code === 'EAGAIN') })
  })
}
