import { describe, expect, it } from 'vitest'
import { explain, type Waiter } from '../../core/loader/waiting.js'

const waiter = (id: string, missing: string[], provides: string[] = [], state: Waiter['state'] = 'waiting'): Waiter => ({ id, state, missing, provides })
const reasons = (...entries: Waiter[]) => Object.fromEntries(explain(entries))

describe('the reason why an entry waits', () => {
  it('names a service that nobody provides, and what to do', () => {
    expect(reasons(waiter('notes', ['store']))).toEqual({ notes: 'plugin "notes" waits for service "store", which no enabled plugin provides; enable one, or drop it from inject' })
  })
  it.each(['constructor', '__proto__', 'toString'])('names a service that is called as what every object has: %s', name => {
    expect(reasons(waiter('notes', [name]))['notes']).toBe(`plugin "notes" waits for service "${name}", which no enabled plugin provides; enable one, or drop it from inject`)
  })
  it('says of a service that only a daemon has how to get one', () => {
    expect(reasons(waiter('web', ['routes']))).toEqual({ web: 'plugin "web" waits for service "routes", which only a daemon has; start one with "hx start"' })
  })
  it.each<[Waiter, string]>([
    [waiter('db', [], ['store'], 'disabled'), 'which no enabled plugin provides; enable "db", or drop it from inject'],
    [waiter('db', [], ['store'], 'failed'), 'of plugin "db", which is not running (failed)'],
    [waiter('db', ['disk'], ['store']), 'of plugin "db", which waits itself'],
    [waiter('db', [], ['store'], 'active'), 'which plugin "db" says it provides but does not; see its provides'],
  ])('names who would provide it: %j', (provider, text) => {
    expect(reasons(waiter('notes', ['store']), provider)['notes']).toContain(text)
  })
  it('names a cycle of two, and of one', () => {
    const { a, b } = reasons(waiter('a', ['y'], ['x']), waiter('b', ['x'], ['y']))
    expect(a).toContain('plugin "a" waits in a cycle: a > b > a; one of them has to do without')
    expect(b).toContain('plugin "b" waits in a cycle: b > a > b')
    expect(reasons(waiter('self', ['x'], ['x']))['self']).toContain('plugin "self" waits in a cycle: self > self')
  })
  it('names a cycle of four, and does not blame whoever only waits for it', () => {
    const four = reasons(waiter('a', ['1'], ['4']), waiter('b', ['2'], ['1']), waiter('c', ['3'], ['2']), waiter('d', ['4'], ['3']), waiter('outside', ['1']))
    expect(four['a']).toContain('a > b > c > d > a')
    expect(four['outside']).toContain('of plugin "b", which waits itself')
  })
})
