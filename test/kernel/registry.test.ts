import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HarnessError } from '../../core/errors.js'
import { currentOwner, runAs } from '../../core/kernel/async-context.js'
import { Owners, type Owner, type Scope } from '../../core/kernel/owners.js'
import { Registry, type Unique } from '../../core/kernel/registry.js'
import { deferred, settled } from '../support/hooks.js'

interface Thing { readonly text: string; readonly override?: boolean }
const unique: Unique<Thing> = (entry, present) => {
  if (!entry.value.override && !present.value.override) throw new HarnessError('already_registered', `tool "${entry.slot}" belongs to plugin "${present.owner.id}"`)
}

function table() {
  const owners = new Owners()
  const tools = new Registry<Thing>('tool', owners, { unique })
  const names = new Registry<string>('name', owners)
  const plugin = (id: string, row: number, stage: Owner['stage'] = 'live', generation = 1) => {
    const owner: Owner = { id, row, stage, generation }
    const undos: (() => unknown)[] = []
    let calls = 0
    const scope: Scope = { owner, path: () => [++calls], effect: undo => { undos.push(undo); return () => { undo() } } }
    return { owner, scope, undo: () => { for (const undo of undos.splice(0).reverse()) undo() } }
  }
  return { owners, tools, names, plugin }
}
const shown = (registry: Registry<string>, slot = 's') => registry.look(slot).values

describe('order', () => {
  it('is the row, then the place inside the plugin, whatever the order of registration', () => {
    const { names, plugin } = table()
    const late = plugin('late', 2), early = plugin('early', 1)
    names.add(late.scope, 's', 'late 1')
    names.add(early.scope, 's', 'early 1')
    names.add(late.scope, 's', 'late 2')
    names.add(early.scope, 's', 'early 2')
    expect(shown(names)).toEqual(['early 1', 'early 2', 'late 1', 'late 2'])
  })
  it('puts prepended entries before all others, again by row', () => {
    const { names, plugin } = table()
    const a = plugin('a', 0), b = plugin('b', 1)
    names.add(a.scope, 's', 'a')
    names.add(b.scope, 's', 'b first', { prepend: true })
    names.add(a.scope, 's', 'a first', { prepend: true })
    expect(shown(names)).toEqual(['a first', 'b first', 'a'])
  })
  it('keeps what a child scope registers at the place of the child, whenever that is', () => {
    const { names, plugin } = table()
    const a = plugin('a', 0)
    names.add(a.scope, 's', 'before')
    const at = a.scope.path()
    names.add(a.scope, 's', 'after')
    let calls = 0
    const child: Scope = { ...a.scope, path: () => [...at, ++calls] }
    names.add(child, 's', 'inside 1')
    names.add(child, 's', 'inside 2')
    expect(shown(names)).toEqual(['before', 'inside 1', 'inside 2', 'after'])
  })
  it('changes when rows change, and only then', () => {
    const { owners, names, plugin } = table()
    const a = plugin('a', 0), b = plugin('b', 1)
    names.add(a.scope, 's', 'a')
    names.add(b.scope, 's', 'b')
    owners.reorder(new Map([[a.owner, 1], [b.owner, 0]]))
    expect(shown(names)).toEqual(['b', 'a'])
    expect(names.entries().map(({ value }) => value)).toEqual(['b', 'a'])
  })
  it('holds for any rows, prepends and order of registration', () => {
    fc.assert(fc.property(fc.array(fc.record({ row: fc.nat(5), prepend: fc.boolean() }), { maxLength: 20 }), entries => {
      const { names, plugin } = table()
      const plugins = Array.from({ length: 6 }, (_, row) => plugin(`p${row}`, row))
      entries.forEach(({ row, prepend }, at) => { names.add(plugins[row]!.scope, 's', `${prepend ? 0 : 1}${row}${String(at).padStart(2, '0')}`, { prepend }) })
      expect(shown(names)).toEqual([...shown(names)].sort())
    }))
  })
})

describe('registering', () => {
  it('is undone by its disposer, any number of times, and leaves nothing', () => {
    const { names, plugin } = table()
    const a = plugin('a', 0)
    const off = names.add(a.scope, 's', 'a')
    expect(names.size).toBe(1)
    off()
    off()
    expect(names.size).toBe(0)
    expect(names.slots()).toEqual([])
    expect(names.has('s')).toBe(false)
  })
  it('takes the same value twice and gives each back apart', () => {
    const { names, plugin } = table()
    const a = plugin('a', 0)
    const off = names.add(a.scope, 's', 'same')
    names.add(a.scope, 's', 'same')
    off()
    off()
    expect(shown(names)).toEqual(['same'])
  })
  it.each(['retired', 'disposed'] as const)('is refused for a %s owner', stage => {
    const { names, plugin } = table()
    expect(() => names.add(plugin('a', 0, stage).scope, 's', 'a')).toThrow(expect.objectContaining({ code: 'stale_context' }))
    expect(names.size).toBe(0)
  })
  it('leaves nothing when the scope refuses the effect', () => {
    const { names, plugin } = table()
    const { scope } = plugin('a', 0)
    expect(() => names.add({ ...scope, effect: () => { throw new Error('full') } }, 's', 'a')).toThrow('full')
    expect(names.size).toBe(0)
  })
  it('does not change a list that was published before', () => {
    const { names, plugin } = table()
    const a = plugin('a', 0)
    names.add(a.scope, 's', '1')
    const before = names.look('s')
    names.add(a.scope, 's', '2')
    expect(before.values).toEqual(['1'])
    expect(shown(names)).toEqual(['1', '2'])
  })
})

describe('a name with one owner', () => {
  it('refuses a second live owner, and one plugin that takes it twice', () => {
    const { tools, plugin } = table()
    const a = plugin('a', 0), b = plugin('b', 1)
    tools.add(a.scope, 'bash', { text: 'a' })
    expect(() => tools.add(b.scope, 'bash', { text: 'b' })).toThrow('tool "bash" belongs to plugin "a"')
    expect(() => tools.add(a.scope, 'bash', { text: 'again' })).toThrow('belongs to plugin "a"')
    expect(tools.size).toBe(1)
  })
  it('lets an override stand first', () => {
    const { tools, plugin } = table()
    tools.add(plugin('a', 0).scope, 'bash', { text: 'a' })
    tools.add(plugin('b', 1).scope, 'bash', { text: 'b', override: true }, { prepend: true })
    expect(tools.get('bash')?.value.text).toBe('b')
  })
  it('is checked at the switch for what was staged, against what will be there', () => {
    const { owners, tools, plugin } = table()
    const a = plugin('a', 0), b = plugin('b', 1, 'staged'), a2 = plugin('a', 0, 'staged', 2)
    tools.add(a.scope, 'bash', { text: 'a' })
    tools.add(b.scope, 'bash', { text: 'b' })
    tools.add(a2.scope, 'bash', { text: 'a2' })
    expect(() => owners.switch([b.owner])).toThrow(expect.objectContaining({ code: 'already_registered' }))
    expect(b.owner.stage).toBe('staged')
    owners.switch([a2.owner], [a.owner])
    expect(tools.get('bash')?.value.text).toBe('a2')
  })
  it('may be swapped by two plugins of one switch', () => {
    const { owners, tools, plugin } = table()
    const a = plugin('a', 0), b = plugin('b', 1), a2 = plugin('a', 0, 'staged', 2), b2 = plugin('b', 1, 'staged', 2)
    tools.add(a.scope, 'x', { text: 'a' })
    tools.add(b.scope, 'y', { text: 'b' })
    tools.add(a2.scope, 'y', { text: 'a' })
    tools.add(b2.scope, 'x', { text: 'b' })
    owners.switch([a2.owner, b2.owner], [a.owner, b.owner])
    expect([tools.get('x')?.owner.id, tools.get('y')?.owner.id]).toEqual(['b', 'a'])
  })
  it('clashes between two newcomers of one switch', () => {
    const { owners, tools, plugin } = table()
    const a = plugin('a', 0, 'staged'), b = plugin('b', 1, 'staged')
    tools.add(a.scope, 'x', { text: 'a' })
    tools.add(b.scope, 'x', { text: 'b' })
    expect(() => owners.switch([a.owner, b.owner])).toThrow(HarnessError)
  })
})

describe('a switch', () => {
  it('shows nothing staged, then everything in all registries at once', () => {
    const { owners, names, tools, plugin } = table()
    const old = plugin('a', 0), fresh = plugin('a', 0, 'staged', 2)
    names.add(old.scope, 's', 'old')
    names.add(fresh.scope, 's', 'new')
    tools.add(fresh.scope, 'bash', { text: 'new' })
    expect([shown(names), tools.get('bash')]).toEqual([['old'], undefined])
    owners.switch([fresh.owner], [old.owner])
    expect([shown(names), tools.get('bash')?.value.text]).toEqual([['new'], 'new'])
    expect([old.owner.stage, fresh.owner.stage]).toEqual(['retired', 'live'])
  })
  it('changes nothing anywhere when a later registry refuses it', () => {
    const owners = new Owners()
    const first = new Registry<string>('first', owners)
    const second = new Registry<string>('second', owners, { unique: () => { throw new Error('taken') } })
    const scope = (owner: Owner): Scope => ({ owner, path: () => [1], effect: undo => undo as () => void })
    const old: Owner = { id: 'old', generation: 1, row: 0, stage: 'live' }, other: Owner = { id: 'other', generation: 1, row: 1, stage: 'live' }, fresh: Owner = { id: 'old', generation: 2, row: 0, stage: 'staged' }
    first.add(scope(old), 's', 'old')
    first.add(scope(fresh), 's', 'new')
    second.add(scope(other), 'name', 'theirs')
    second.add(scope(fresh), 'name', 'mine')
    expect(() => owners.switch([fresh], [old])).toThrow('taken')
    expect([first.look('s').values, old.stage, fresh.stage]).toEqual([['old'], 'live', 'staged'])
  })
  it('takes only staged owners', () => {
    const { owners, plugin } = table()
    expect(() => owners.switch([plugin('a', 0).owner])).toThrow('only a staged version can be switched in, this one is live')
  })
  it('leaves no old version behind after 1,000 reloads under a held list', () => {
    const { owners, names, plugin } = table()
    let now = plugin('a', 0)
    names.add(now.scope, 's', 'v0')
    const held = names.take('s') as Exclude<ReturnType<typeof names.take>, Promise<unknown>>
    const first = now.owner
    for (let generation = 1; generation <= 1000; generation++) {
      const next = plugin('a', 0, 'staged', generation)
      names.add(next.scope, 's', `v${generation}`)
      owners.switch([next.owner], [now.owner])
      if (generation > 1) { expect(owners.idle(now.owner)).toBe(true); owners.dispose(now.owner); now.undo() }
      now = next
    }
    expect([shown(names), owners.idle(first)]).toEqual([['v1000'], false])
    names.release(held)
    expect([names.size, owners.idle(first)]).toEqual([2, true])
  })
})

describe('a call', () => {
  it('runs on the account of the owner, with its value, and is nobody’s when the slot is', async () => {
    const { tools, plugin } = table()
    const a = plugin('a', 0)
    tools.add(a.scope, 'bash', { text: 'a' })
    expect(await tools.use('bash', async ({ text }) => [text, currentOwner()?.id])).toEqual(['a', 'a'])
    expect(tools.use('zsh', () => 1)).toBeUndefined()
  })
  it('rejects when the work throws, and counts as ended', async () => {
    const { owners, tools, plugin } = table()
    const a = plugin('a', 0)
    tools.add(a.scope, 'bash', { text: 'a' })
    await expect(tools.use('bash', () => { throw new Error('boom') })).rejects.toThrow('boom')
    expect(owners.idle(a.owner)).toBe(true)
  })
  it('keeps its owner from being idle until the last one ends', async () => {
    const { owners, tools, plugin } = table()
    const a = plugin('a', 0)
    tools.add(a.scope, 'bash', { text: 'a' })
    const one = deferred(), two = deferred()
    const runs = [tools.use('bash', () => one.promise), tools.use('bash', () => two.promise)]
    owners.retire(a.owner)
    let drained = false
    const drain = owners.drained(a.owner).then(() => { drained = true })
    expect([owners.inFlight(a.owner), tools.get('bash')]).toEqual([2, undefined])
    one.resolve()
    await settled()
    expect(drained).toBe(false)
    two.resolve()
    await drain
    await Promise.all(runs)
    expect(owners.inFlight(a.owner)).toBe(0)
  })
  it('is not held up by another owner of the same name', async () => {
    const { owners, tools, plugin } = table()
    const a = plugin('a', 0), b = plugin('b', 1)
    tools.add(a.scope, 'bash', { text: 'a' })
    tools.add(b.scope, 'bash', { text: 'b', override: true }, { prepend: true })
    const run = deferred()
    const running = tools.use('bash', () => run.promise)
    await settled()
    expect([owners.idle(a.owner), owners.idle(b.owner)]).toEqual([true, false])
    run.resolve()
    await running
  })
})

describe('a closed gate', () => {
  const closing = () => {
    const made = table()
    const a = made.plugin('a', 0), b = made.plugin('b', 1)
    made.tools.add(a.scope, 'bash', { text: 'old' })
    made.tools.add(b.scope, 'read', { text: 'read' })
    return { ...made, a, b }
  }
  it('lets new calls of the closed slots wait, others pass, and all see what is there when it opens', async () => {
    const { owners, tools, plugin, a } = closing()
    const open = owners.close([a.owner], 10_000)
    const waiting = tools.use('bash', ({ text }) => text)!
    expect(await tools.use('read', ({ text }) => text)).toBe('read')
    owners.dispose(a.owner)
    const fresh = plugin('a', 0, 'staged', 2)
    tools.add(fresh.scope, 'bash', { text: 'new' })
    expect(tools.has('bash')).toBe(true)
    owners.switch([fresh.owner])
    open()
    expect(await waiting).toBe('new')
    expect(await tools.use('bash', ({ text }) => text)).toBe('new')
  })
  it('still shows what stands behind it, so that nobody takes it for gone', () => {
    const { owners, tools, plugin, a, b } = closing()
    const all = () => tools.entries().map(({ value }) => value.text)
    const open = owners.close([a.owner], 10_000)
    owners.dispose(a.owner)
    expect([all(), tools.slots(), tools.get('bash')?.value.text]).toEqual([['old', 'read'], ['read', 'bash'], 'old'])
    const fresh = plugin('a', 0, 'staged', 2)
    tools.add(fresh.scope, 'bash', { text: 'new' })
    owners.switch([fresh.owner])
    expect(all()).toEqual(['old', 'read'])
    open()
    expect(all()).toEqual(['new', 'read'])

    const again = owners.close([fresh.owner, b.owner], 10_000)
    owners.dispose(fresh.owner)
    expect(all()).toEqual(['new', 'read'])
    again()
    expect([all(), tools.get('bash')]).toEqual([['read'], undefined])
  })
  it('rejects who waited when nobody came back', async () => {
    const { owners, tools, a } = closing()
    const open = owners.close([a.owner], 10_000)
    const waiting = tools.use('bash', () => 1)!
    owners.dispose(a.owner)
    open()
    await expect(waiting).rejects.toThrow('tool "bash" is gone: its plugin did not come back from a reload')
    expect(tools.use('bash', () => 1)).toBeUndefined()
  })
  it('gives up after its limit, naming the plugin', async () => {
    const { owners, tools, a } = closing()
    const open = owners.close([a.owner], 20)
    await expect(tools.use('bash', () => 1)).rejects.toMatchObject({ code: 'plugin_timeout', message: 'tool "bash" waits for plugin "a": it is being reloaded and did not come back within 20 ms' })
    open()
  })
  it('lets go of who is aborted while waiting', async () => {
    const { owners, tools, a } = closing()
    const open = owners.close([a.owner], 10_000)
    const turn = new AbortController()
    const waiting = tools.use('bash', () => 1, turn.signal)!
    turn.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
    open()
  })
  it('lets a call pass that was begun inside one that the drain waits for, on what was there', async () => {
    const { owners, tools, a } = closing()
    const go = deferred()
    const outer = tools.use('bash', async ({ text }) => {
      await go.promise
      return [text, await tools.use('bash', inner => inner.text)]
    })!
    const open = owners.close([a.owner], 10_000)
    owners.retire(a.owner)
    const drained = owners.drained(a.owner)
    go.resolve()
    expect(await outer).toEqual(['old', 'old'])
    await drained
    open()
  })
  it('refuses such a call once the plugin is disposed', async () => {
    const { owners, tools, a } = closing()
    const go = deferred()
    const outer = tools.use('bash', async () => { await go.promise; return tools.use('bash', () => 1) })!
    const open = owners.close([a.owner], 10_000)
    owners.dispose(a.owner)
    go.resolve()
    await expect(outer).rejects.toThrow('its plugin "a" was unloaded while this call ran')
    open()
  })
  it('does not let pass what an ended call has left running', async () => {
    const { owners, tools, a } = closing()
    const go = deferred()
    let left: Promise<unknown> | undefined
    await tools.use('bash', () => { left = go.promise.then(() => tools.use('bash', ({ text }) => text)); return 1 })
    const held = runAs(undefined, () => left)
    const open = owners.close([a.owner], 50)
    go.resolve()
    await expect(held).rejects.toMatchObject({ code: 'plugin_timeout' })
    open()
  })
  it('may be closed twice and opens with the last opener', async () => {
    const { owners, tools, a } = closing()
    const one = owners.close([a.owner], 10_000), two = owners.close([a.owner], 10_000)
    let done = false
    const waiting = tools.use('bash', () => 1)!.then(() => { done = true })
    one()
    await settled()
    expect(done).toBe(false)
    two()
    await waiting
  })
})
