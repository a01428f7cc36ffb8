import { describe, expect, it } from 'vitest'
import { isSessionId, newSessionId } from '../../core/agent/session-id.js'

describe('newSessionId', () => {
  it('is the time and a few letters', () => {
    expect(newSessionId(new Date('2026-11-30T17:45:12.345Z'))).toMatch(/^20261130-174512-[0-9a-z]{6}$/)
  })
  it('sorts by time as text, and is a valid name', () => {
    const ids = [0, 1000, 3_600_000, 86_400_000, 40 * 86_400_000, 400 * 86_400_000].map(ms => newSessionId(new Date(Date.UTC(2026, 8, 9) + ms)))
    expect(ids.toSorted()).toEqual(ids)
    expect(ids.every(isSessionId)).toBe(true)
  })
  it('does not meet another of the same second', () => {
    const now = new Date()
    expect(new Set(Array.from({ length: 1000 }, () => newSessionId(now))).size).toBeGreaterThanOrEqual(999)
  })
})
