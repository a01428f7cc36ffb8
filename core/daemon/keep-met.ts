/**
 * Sees to it that the daemon can be met as long as it runs: who cleans up temporary folders may take its socket, token or mark away, and whoever looks for it then would find a lock that nobody answers for.
 * Looks every other second, and puts back what is gone or is none any more (an empty token, a file in the place of the socket). Knows no HTTP. Another token is left alone: it is changed by a person who means it.
 */
import { lstat, rm } from 'node:fs/promises'
import { messageOf } from '../errors.js'
import type { Logger } from '../kernel/log.js'
import { readToken, securedFolder, writeToken, type Endpoint } from './endpoint.js'
import { readMark } from './run-mark.js'

const LOOK_MS = 2000

export interface Met {
  /** Listens on the path of the socket again; those who are connected stay so. */
  listen(): Promise<void>
  mark(): Promise<void>
}

/** The disposer ends it; it resolves when nothing is being put back any more. */
export function keepMet(endpoint: Endpoint, met: Met, log: Logger): () => Promise<void> {
  let mending: Promise<void> | undefined, told: string | undefined
  const mend = async () => {
    const gone = await missing(endpoint)
    if (gone.length === 0) return
    await securedFolder(endpoint)
    for (const file of gone) await rm(file, { force: true })
    if (gone.includes(endpoint.token)) await writeToken(endpoint)
    if (gone.includes(endpoint.socket)) await met.listen()
    if (gone.includes(endpoint.mark)) await met.mark()
    log.warn(`somebody removed or spoilt ${gone.map(file => `"${file}"`).join(', ')}; put back, so that this daemon can be met again`)
    told = undefined
  }
  const timer = setInterval(() => {
    mending ??= mend().catch((error: unknown) => {
      const why = messageOf(error)
      if (why !== told) log.error(`this daemon can not be met any more, and what is missing could not be put back: ${why}`)
      told = why
    }).finally(() => { mending = undefined })
  }, LOOK_MS).unref()
  return async () => {
    clearInterval(timer)
    await mending
  }
}

/** What is not there, or can't be used: nobody would find this daemon by it. */
async function missing(endpoint: Endpoint): Promise<string[]> {
  const there = await Promise.all([lstat(endpoint.socket).then(found => found.isSocket(), () => false), readToken(endpoint).catch(() => undefined), readMark(endpoint).catch(() => undefined)])
  return [endpoint.socket, endpoint.token, endpoint.mark].filter((_, at) => !there[at])
}
