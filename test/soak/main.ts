/** `npm run soak [-- NAME…]`: what only shows after thousands of times, or after minutes. Prints figures, and ends with 1 when one of them is out of bounds. Each soak is a file; short forms are in test/walks. */
import type { Soak } from './soak.js'

/** In the order in which they run. */
const SOAKS: Readonly<Record<string, () => Promise<{ readonly soak: Soak }>>> = {
  saves: () => import('./saves.js'),
  reloads: () => import('./reloads.js'),
  sessions: () => import('./sessions.js'),
  swaps: () => import('./swaps.js'),
  kills: () => import('./kills.js'),
  rivals: () => import('./rivals.js'),
  load: () => import('./load.js'),
  stalled: () => import('./stalled.js'),
  resumes: () => import('./resumes.js'),
  large: () => import('./large.js'),
  aborts: () => import('./aborts.js'),
  disk: () => import('./disk.js'),
  stops: () => import('./stops.js'),
  descriptors: () => import('./descriptors.js'),
}

const asked = process.argv.slice(2), names = asked.length > 0 ? asked : Object.keys(SOAKS)
const unknown = names.filter(name => !Object.hasOwn(SOAKS, name))
if (unknown.length > 0) {
  console.error(`there is no soak ${unknown.join(', ')}; there are: ${Object.keys(SOAKS).join(', ')}`)
  process.exit(2)
}
console.log(`node ${process.version}`)
const problems: string[] = []
for (const name of names) {
  const { soak } = await SOAKS[name]!()
  await soak({
    say: line => { console.log(`${`${name}:`.padEnd(13)}${line}`) },
    check: (holds, problem) => { if (!holds) problems.push(`${name}: ${problem}`) },
  })
}
for (const problem of problems) console.error(problem)
process.exit(problems.length > 0 ? 1 : 0)
