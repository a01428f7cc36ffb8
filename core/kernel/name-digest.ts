/**
 * SHA-256 of a short text, for what is named after a path: sockets, locks, records. Pure, and the same as node:crypto's, which is 36 modules of Node: a start would load them for this alone.
 * Interpreted, some 50 microseconds; what is long or secret is for node:crypto.
 */
const PRIMES = primes(64)
/** The first 32 bits of a fraction. */
const bits = (root: number): number => (root % 1) * 2 ** 32 | 0
const START = PRIMES.slice(0, 8).map(prime => bits(Math.sqrt(prime))), ROUND = PRIMES.map(prime => bits(Math.cbrt(prime)))

/** 64 hexadecimal digits. */
export function nameDigest(text: string): string {
  const bytes = Buffer.from(text)
  const padded = Buffer.alloc(Math.ceil((bytes.length + 9) / 64) * 64)
  bytes.copy(padded)
  padded[bytes.length] = 0x80
  padded.writeUInt32BE(bytes.length * 8, padded.length - 4)
  const state = Int32Array.from(START), words = new Int32Array(64)
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 64; i++) words[i] = i < 16 ? padded.readInt32BE(block + i * 4) : spread(words, i)
    mix(state, words)
  }
  return [...state].map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

const turn = (word: number, by: number): number => word >>> by | word << 32 - by

function spread(words: Int32Array, i: number): number {
  const early = words[i - 15]!, late = words[i - 2]!
  return words[i - 16]! + (turn(early, 7) ^ turn(early, 18) ^ early >>> 3) + words[i - 7]! + (turn(late, 17) ^ turn(late, 19) ^ late >>> 10) | 0
}
function mix(state: Int32Array, words: Int32Array): void {
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
  for (let i = 0; i < 64; i++) {
    const one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + ROUND[i]! + words[i]! | 0
    const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c) | 0
    h = g; g = f; f = e; e = d + one | 0
    d = c; c = b; b = a; a = one + two | 0
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i]! += word
}
function primes(count: number): number[] {
  const found: number[] = []
  for (let next = 2; found.length < count; next++) if (found.every(prime => next % prime !== 0)) found.push(next)
  return found
}
