import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { expect, it, onTestFinished } from 'vitest'
import { eventStream, type Send } from '../../core/daemon/event-stream.js'
import { HEADERS, PROTOCOL } from '../../core/daemon/protocol.js'
import { VERSION } from '../../core/version.js'

/** What a client gets of `tell`; nothing is read before it asks. */
async function served(tell: (send: Send, gone: AbortSignal) => Promise<void>): Promise<IncomingMessage> {
  const app = new Hono().get('/', context => eventStream(context, tell))
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false })).listen(0, '127.0.0.1')
  onTestFinished(() => { server.closeAllConnections(); server.close() })
  await once(server, 'listening')
  const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent: false })
  const [response] = await once(request, 'response') as [IncomingMessage]
  return response
}
const condition = async (holds: () => boolean) => { while (!holds()) await new Promise(setImmediate) }

it('many events that come together go out in few pieces, whole and in order', async () => {
  const response = await served(async send => { for (let n = 1; n <= 1000; n++) await send({ event: 'log', id: n, data: { n } }) })
  expect(response.headers).toMatchObject({ 'content-type': 'text/event-stream', [HEADERS.version]: VERSION, [HEADERS.protocol]: String(PROTOCOL) })
  const pieces: string[] = []
  for await (const piece of response.setEncoding('utf8')) pieces.push(piece as string)
  expect(pieces.join('')).toBe(Array.from({ length: 1000 }, (_, n) => `event: log\ndata: {"n":${n + 1}}\nid: ${n + 1}\n\n`).join(''))
  expect(pieces.length).toBeLessThan(100)
})

it('an event does not wait for the next', async () => {
  let more!: () => void
  const response = await served(async send => {
    await send({ event: 'delta', data: 1 })
    await new Promise<void>(resolve => { more = resolve })
    await send({ event: 'delta', data: 2 })
  })
  const pieces = response.setEncoding('utf8')[Symbol.asyncIterator]()
  expect((await pieces.next()).value).toBe('event: delta\ndata: 1\n\n')
  more()
  expect((await pieces.next()).value).toBe('event: delta\ndata: 2\n\n')
  expect((await pieces.next()).done).toBe(true)
})

it('a client that takes nothing holds up whoever tells it, and then misses nothing', async () => {
  const COUNT = 10_000
  let told = 0, last = -1
  const response = await served(async send => { for (; told < COUNT; told++) await send({ event: 'delta', data: 'x'.repeat(1000) }) })
  for (let same = 0; same < 200; same = told === last ? same + 1 : 0) { last = told; await new Promise(setImmediate) }
  expect(told).toBeLessThan(COUNT)
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += piece as string
  expect(text.split('\n\n')).toHaveLength(COUNT + 1)
})

it('whoever tells hears that the client has left, also one that was behind', async () => {
  let told = 0, left = false
  const response = await served(async (send, gone) => {
    gone.addEventListener('abort', () => { left = true })
    for (; !gone.aborted; told++) await send({ event: 'delta', data: 'x'.repeat(1000) })
  })
  response.destroy()
  await condition(() => left)
  const at = told
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  expect(told).toBe(at)
})

it('a failure of whoever tells breaks the connection, so that its client asks again', async () => {
  const response = await served(async send => { await send({ event: 'delta', data: 1 }); throw new Error('made to fail') })
  await expect((async () => { for await (const _ of response);  })()).rejects.toThrow('aborted')
})
