/** Two daemons of one config that are started at the same moment, again and again, on what the round before left. One serves, the other says that one does and ends with 0. */
import { once } from 'node:events'
import { settle, spread } from '../support/served.js'
import type { Soak } from './soak.js'

export interface RivalFigures { readonly rounds: number; /** Rounds that ended otherwise. */ readonly wrong: readonly string[]; /** Milliseconds until the loser had ended. */ readonly loserMs: readonly number[] }

export const soak: Soak = async ({ say, check }) => {
  const { rounds, wrong, loserMs } = await startTwice({ rounds: 100 })
  const loser = spread(loserMs)
  say(`two daemons at once, ${rounds} times: ${wrong.length} times not exactly one served; the other had ended after ${loser.p50.toFixed(0)} ms, at most ${loser.max.toFixed(0)} ms`)
  check(wrong.length === 0, wrong.join('; '))
}

export async function startTwice({ rounds }: { rounds: number }): Promise<RivalFigures> {
  const place = await settle(), wrong: string[] = [], loserMs: number[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      const begun = performance.now(), rival = place.hx(['--trust', 'start', '--foreground'])
      let said = ''
      rival.stdout!.resume()
      rival.stderr!.setEncoding('utf8').on('data', (text: string) => { said += text })
      const over = once(rival, 'exit').then(([code]) => { loserMs.push(performance.now() - begun); return `rival ended with ${code}` })
      const mine = await place.serve().catch((error: Error) => error.message)
      if (typeof mine === 'string') {                        // the rival has won, and serves
        loserMs.push(performance.now() - begun)
        if (!/ended with 0: .*runs already/.test(mine)) wrong.push(mine)
        rival.kill(round % 2 ? 'SIGKILL' : 'SIGTERM')
        await over
        loserMs.pop()
        continue
      }
      if (mine.pid === rival.pid) {                          // it was the rival that answered; mine is about to end
        const [code] = mine.child.exitCode === null ? await once(mine.child, 'exit') as [number] : [mine.child.exitCode]
        loserMs.push(performance.now() - begun)
        if (code !== 0 || !mine.stderr().includes('runs already')) wrong.push(`mine ended with ${code}: ${mine.stderr()}`)
        rival.kill(round % 2 ? 'SIGKILL' : 'SIGTERM')
        await over
        loserMs.pop()
      } else {
        const ended = await over
        if (ended !== 'rival ended with 0' || !said.includes('runs already')) wrong.push(`${ended}: ${said}`)
        await mine.kill(round % 2 ? 'SIGKILL' : 'SIGTERM')
      }
    }
    return { rounds, wrong, loserMs }
  } finally { await place.close() }
}
