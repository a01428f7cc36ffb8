import { describe, expect, it } from 'vitest'
import { encode } from '../../core/agent/session-record.js'

const tool = (description: string) => ({ name: 'look', description, parameters: { type: 'object' } })
const tools = (seq: number, description: string) => encode(seq, '2026-12-01T00:00:00.000Z', { type: 'tools', tools: [tool(description)] })
const offeredBy = ({ event }: ReturnType<typeof encode>) => event.type === 'tools' ? event.tools : undefined

describe('a line of tools', () => {
  it('is the JSON of its event, and reads back as what was given, frozen throughout', () => {
    const { event, line } = tools(3, 'sees “all”')
    expect(line).toBe(JSON.stringify({ seq: 3, ts: '2026-12-01T00:00:00.000Z', type: 'tools', tools: [tool('sees “all”')] }))
    expect(event).toEqual(JSON.parse(line))
    expect(() => { (offeredBy({ event, line })![0]!.parameters as { type: string }).type = 'other' }).toThrow(TypeError)
  })
  it('shares its tools with the next session that offers the same, and with no other', () => {
    const one = tools(3, 'sees'), same = tools(4, 'sees'), changed = tools(3, 'hears')
    expect(offeredBy(same)).toBe(offeredBy(one))
    expect(same.event.seq).toBe(4)
    expect(offeredBy(changed)![0]!.description).toBe('hears')
    expect(offeredBy(one)![0]!.description).toBe('sees')
  })
})
