/**
 * What a step costs the host as the conversation grows: a turn of one step with a model that answers at once, at 10 to 10,000 messages, beside the first.
 * What every client of a model has to do at each step, to write the whole conversation as JSON, stands beside it: the one part that has to grow.
 */
import { startApp } from '../support/app.js'
import { row, type Row } from './row.js'

const SIZES = [10, 100, 1000, 10_000]
/** Turns that are timed at each size; each adds two messages. */
const TIMED = 20

export async function benchHistory(): Promise<Row[]> {
  let messages: readonly object[] = []
  const running = await startApp({ files: {}, config: 'agent: { model: scripted }\nsessions: { durability: none }\nplugins: []\n', watch: false, script: request => { ({ messages } = request); return 'done' } })
  const turn = async (session?: string) => {
    const begin = performance.now()
    const { result } = await running.run({ prompt: 'What stands in line 12 of README.md?', ...session !== undefined && { session } })
    return { ms: performance.now() - begin, session: result.session }
  }
  try {
    const { session } = await turn()
    const steps: Row[] = [], written: Row[] = []
    for (const size of SIZES) {
      while (messages.length < size - TIMED) await turn(session)
      const times: number[] = [], texts: number[] = []
      for (let i = 0; i < TIMED; i++) {
        times.push((await turn(session)).ms * 1000)
        const begin = performance.now()
        JSON.stringify(messages)
        texts.push((performance.now() - begin) * 1000)
      }
      steps.push(row(`a turn of one step, at ${size} messages`, 'µs', times, steps[0]))
      written.push(row(`their JSON, at ${size} messages`, 'µs', texts, written[0]))
    }
    return [...steps, ...written]
  } finally {
    await running.close()
  }
}
