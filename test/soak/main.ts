/** `npm run soak`: what only shows after thousands of times. Prints the figures, and ends with 1 when one of them is out of bounds. Short forms are in test/walks/soak.test.ts. */
import { grown, reloadManyTimes } from './reloads.js'
import { saveAtRandom } from './saves.js'

/** KB of heap a reload, beyond what the schema library keeps. */
const HEAP_LIMIT = 0.1
const problems: string[] = []
const check = (holds: boolean, problem: string) => { if (!holds) problems.push(problem) }

console.log(`node ${process.version}`)
const saves = await saveAtRandom({ saves: 1_000 })
const late = [...saves.settled].sort((a, b) => a - b)
console.log(`saves:   ${saves.saves} at random, ${saves.reloads} reloads, ${saves.wrong.length} wrong in the end, ${saves.complaints.length} told as a failure; settled after ${late[late.length >> 1]!.toFixed(0)} ms, at most ${late.at(-1)!.toFixed(0)} ms`)
check(saves.wrong.length === 0, `wrong after saves: ${saves.wrong.join(', ')}`)
check(saves.complaints.length === 0, saves.complaints.join('\n'))

const { heap, schema, first, last, complaints, ...reloads } = await reloadManyTimes({ reloads: 10_000, warmUp: 3_000 })
const kilobytes = (value: number) => `${value.toFixed(3)} KB`
console.log(`reloads: ${reloads.reloads} of 5 KB with a Config, ${reloads.msPerReload.toFixed(1)} ms each; ${kilobytes(heap)} of heap each, of which the schema library keeps ${kilobytes(schema)}; ${first.rssMB} to ${last.rssMB} MB resident`)
check(heap - schema <= HEAP_LIMIT, `each reload keeps ${kilobytes(heap - schema)} of heap, the limit is ${HEAP_LIMIT}`)
check(grown(first, last).length === 0, `more than after the warm-up: ${grown(first, last).join(', ')}`)
check(complaints.length === 0, complaints.join('\n'))

for (const problem of problems) console.error(problem)
process.exit(problems.length > 0 ? 1 : 0)
