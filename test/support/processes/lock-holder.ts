/** Tries for the lock of each name on its standard input, says `won NAME`, `lost NAME` or `failed MESSAGE`, and keeps what it won. */
import { createInterface } from 'node:readline'
import { acquireLock } from '../../../core/kernel/lock.js'

for await (const name of createInterface({ input: process.stdin })) {
  try {
    console.log(`${await acquireLock(name) ? 'won' : 'lost'} ${name}`)
  } catch (error) {
    console.log(`failed ${String(error)}`)
  }
}
