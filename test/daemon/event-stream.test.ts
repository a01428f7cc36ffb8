import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { eventStream, type Send } from '../../core/daemon/event-stream.js'

/** What a client reads of `tell`, piece by piece; nothing is read before it asks. */
async function served(tell: (send: Send) => Promise<void>): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const response = await new Hono().get('/', context => eventStream(context, tell)).request('/')
  return response.body!.getReader()
}
async function* read(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<string> {
  for (const decoder = new TextDecoder(); ;) {
    const { done, value } = await reader.read()
    if (done) return
    yield decoder.decode(value, { stream: true })
  }
}

it('many events that come together go out in few pieces, whole and in order', async () => {
  const reader = await served(async send => { for (let n = 1; n <= 1000; n++) await send({ event: 'log', id: n, data: { n } }) })
  const pieces: string[] = []
  for await (const piece of read(reader)) pieces.push(piece)
  expect(pieces.join('')).toBe(Array.from({ length: 1000 }, (_, n) => `event: log\ndata: {"n":${n + 1}}\nid: ${n + 1}\n\n`).join(''))
  expect(pieces.length).toBeLessThan(500)
})

it('a client that takes nothing holds up whoever tells it, and then misses nothing', async () => {
  const COUNT = 200
  let told = 0
  const reader = await served(async send => { for (; told < COUNT; told++) await send({ event: 'delta', data: 'x'.repeat(1000) }) })
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate)
  expect(told).toBeLessThan(100)
  let text = ''
  for await (const piece of read(reader)) text += piece
  expect(text.split('\n\n')).toHaveLength(COUNT + 1)
})
