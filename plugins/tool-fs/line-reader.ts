/**
 * Lines of a file of any size, in batches, holding one chunk at a time. Knows no path and no tool: it is given a way to read bytes.
 * A line longer than LINE_LIMIT is cut and says how much; a file with a NUL byte near its start is binary and is not read on.
 */
export interface Line {
  /** Without its line end. */
  readonly text: string
  /** It ended in CRLF. */
  readonly crlf: boolean
  /** Characters left out at its end. */
  readonly cut: number
}
/** Bytes from `offset` on; fewer than `maxBytes` only at the end of the file. */
export type ReadAt = (offset: number, maxBytes: number) => Promise<Uint8Array>

export class BinaryFile extends Error {}

const CHUNK = 128 * 1024
const SNIFFED = 8 * 1024
export const LINE_LIMIT = 64 * 1024

export async function* readLines(readAt: ReadAt, signal: AbortSignal): AsyncGenerator<readonly Line[], void, undefined> {
  const decoder = new TextDecoder()                                    // drops a BOM; broken bytes become U+FFFD
  let open = '', cut = 0                                               // the line that no chunk has ended yet
  for (let offset = 0, last = false; !last; offset += CHUNK) {
    signal.throwIfAborted()
    const bytes = await readAt(offset, CHUNK)
    if (offset === 0 && bytes.subarray(0, SNIFFED).includes(0)) throw new BinaryFile('binary file')
    last = bytes.length < CHUNK
    const parts = (open + decoder.decode(bytes, { stream: !last })).split('\n')
    const rest = parts.pop()!
    const lines = parts.map((part, index) => toLine(part, index === 0 ? cut : 0))
    if (parts.length > 0) cut = 0
    if (last) {
      if (rest !== '' || cut > 0) lines.push(toLine(rest, cut, false))
    } else {
      cut += Math.max(0, rest.length - LINE_LIMIT)
      open = rest.slice(0, LINE_LIMIT)
    }
    yield lines
  }
}

/** `ended`: by a line feed. A lone CR at the end of the file ends no line here. */
function toLine(raw: string, cutBefore: number, ended = true): Line {
  const crlf = ended && raw.endsWith('\r')
  const text = crlf ? raw.slice(0, -1) : raw
  return { text: text.slice(0, LINE_LIMIT), crlf, cut: cutBefore + Math.max(0, text.length - LINE_LIMIT) }
}
