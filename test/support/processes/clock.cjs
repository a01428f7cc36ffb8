/** Loaded before a program under test (`node --require`): its clock, and that of its threads, is off by the milliseconds that the file `HX_TEST_CLOCK` holds at that moment. */
const { readFileSync } = require('node:fs')

const Real = Date
const file = process.env.HX_TEST_CLOCK
const now = () => {
  let off = 0
  try { off = Number(readFileSync(file, 'utf8')) } catch { off = 0 }       // not there yet: the clock is right
  return Real.now() + off
}
globalThis.Date = new Proxy(Real, {
  construct: (target, args, made) => Reflect.construct(target, args.length > 0 ? args : [now()], made),
  get: (target, name, receiver) => name === 'now' ? now : Reflect.get(target, name, receiver),
})
