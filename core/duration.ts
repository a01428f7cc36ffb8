/** Durations as people write them. A zod schema, so that plugins' configs get the check, the message and the JSON Schema for nothing. */
import { z } from './z.js'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** 24.8 days. Beyond it a timer of Node fires at once; who writes more means "never". */
const LONGEST_MS = 2 ** 31 - 1
const PATTERN = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/

/** Milliseconds of `500ms`, `5s`, `10m`, `2h`, `1d`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = PATTERN.exec(text.trim())
  return match ? Math.round(Number(match[1]) * UNITS[match[2]!]!) : undefined
}
/** `duration.prefault('10m')`: takes a string such as `10m`, yields milliseconds. */
export const duration = z.string().regex(PATTERN, 'must be a duration such as "500ms", "5s" or "10m"').transform(value => Math.min(parseDuration(value)!, LONGEST_MS))
