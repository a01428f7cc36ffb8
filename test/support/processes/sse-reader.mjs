/** Follows a session of a daemon and prints the `seq` of each log line; connects again where it was whenever the connection ends. Arguments: HX_HOME, session. */
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'

const [home, session] = process.argv.slice(2), run = join(home, 'run')
const socketPath = join(run, readdirSync(run).find(file => file.endsWith('.sock'))), token = readFileSync(socketPath.replace('.sock', '.token'), 'utf8')
let last = 0

function follow() {
  const again = () => { setTimeout(follow, 50) }
  request({ socketPath, path: `/v1/sessions/${session}/events?follow=1`, agent: false, headers: { authorization: `Bearer ${token}`, 'hx-protocol': '1', 'last-event-id': String(last) } }, response => {
    let rest = ''
    response.setEncoding('utf8').on('data', piece => {
      const blocks = (rest + piece).split('\n\n')
      rest = blocks.pop()
      for (const block of blocks) {
        const id = /^id: (\d+)$/m.exec(block)?.[1]
        if (id === undefined) continue
        last = Number(id)
        console.log(last)
      }
    }).on('error', () => {}).on('close', again)
  }).on('error', again).end()
}
follow()
