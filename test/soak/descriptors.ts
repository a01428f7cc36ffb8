/** More clients than there are descriptors: those that are served go on, the others are told or turned away, and when they have gone everything is as before. */
import { once } from 'node:events'
import { logOf, settle } from '../support/served.js'
import type { Soak } from './soak.js'

export interface DescriptorFigures {
  readonly clients: number
  readonly completed: number
  /** Told why, in an answer or in the end of their turn. */
  readonly told: number
  /** Not let in at all. */
  readonly turnedAway: number
  /** What was neither: an answer without a reason, a turn without an end. */
  readonly wrong: readonly string[]
  /** How the turn ended that ran all the while, and one afterwards. */
  readonly first: string
  readonly after: string
}

/** A reason, and not only a word. */
const SENTENCE = /"message":"(?:[^"\\]|\\.){20,}/

export const soak: Soak = async ({ say, check }) => {
  const { clients, completed, told, turnedAway, wrong, first, after } = await crowd({ clients: 80, limit: 90, tokens: 150 })
  say(`90 descriptors, ${clients} clients: ${completed} served, ${told} told why not, ${turnedAway} turned away, ${wrong.length} otherwise; the turn that ran before ended ${first}, one afterwards ${after}`)
  check(wrong.length === 0, wrong.join('; '))
  check(first === 'completed' && after === 'completed', `the turn before ended ${first}, one afterwards ${after}`)
}

/** `tokens`: how long the turn runs that was there before, at 50 ms each. */
export async function crowd({ clients, limit, tokens }: { clients: number; limit: number; tokens: number }): Promise<DescriptorFigures> {
  const place = await settle({ config: 'plugins: [tool-fs, model-openai]\n' })
  let completed = 0, told = 0, turnedAway = 0
  const wrong: string[] = []
  try {
    const served = await place.serve({ prefix: ['bash', '-c', `ulimit -n ${limit}; exec "$0" "$@"`] })
    let begun = () => {}
    const runs = new Promise<void>(resolve => { begun = resolve })
    const end = async (prompt: string) => {
      let last = 'nothing', session = ''
      for await (const { event, data } of served.run(prompt)) {
        if (event === 'session') session = data.session
        if (event === 'delta') begun()
        if (event === 'result') last = data.reason === 'completed' ? 'completed' : `${data.reason}: ${data.message}`
        if (event === 'error') last = `error: ${data.message}`
      }
      return { last, session }
    }
    const first = end(`say ${tokens} 50`)
    await Promise.race([runs, first])
    await Promise.all(Array.from({ length: clients }, async () => {
      let response
      try { response = await served.open('/v1/runs', { method: 'POST', body: { prompt: 'say 20 50', cwd: place.folder } }) } catch { turnedAway++; return }
      let text = ''
      try { for await (const piece of response.setEncoding('utf8')) text += piece as string } catch { turnedAway++; return }
      if (response.statusCode !== 200) { if (SENTENCE.test(text)) told++; else wrong.push(text); return }
      if (text.includes('"reason":"completed"')) completed++
      else if (SENTENCE.test(text.slice(text.search(/^event: (?:result|error)$/m)))) told++
      else wrong.push(text.slice(-300))
    }))
    const before = await first, after = await end('say 3 10')
    for (const { session } of [before, after]) if (logOf(place, session).unreadable > 0) wrong.push(`session ${session} is damaged`)
    if (served.child.exitCode !== null) await once(served.child, 'exit')
    await served.stop()
    return { clients, completed, told, turnedAway, wrong, first: before.last, after: after.last }
  } finally { await place.close() }
}
