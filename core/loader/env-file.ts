/**
 * `.env`: text to an object. Knows no file and never touches `process.env`: what stands here reaches plugins' models and `${env:…}`, not tools.
 * `KEY=value`, `export KEY=value`, single quotes (literal), double quotes (\n \r \t \" \\ \$), both over several lines, `#` comments. Nothing is expanded.
 */
const KEY = /^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*/
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

/** Lines that aren't `KEY=value` are left out, as every shell tool does. The last of two equal keys counts. */
export function parseEnvFile(text: string): Record<string, string> {
  const values: Record<string, string> = Object.create(null)
  let rest = text.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n')
  while (rest !== '') {
    const key = KEY.exec(rest)
    const read = key && readValue(rest.slice(key[0].length))
    if (key && read) values[key[1]!] = read.value
    rest = key && read ? read.rest : afterLine(rest)
  }
  return values
}

const afterLine = (text: string): string => { const end = text.indexOf('\n'); return end < 0 ? '' : text.slice(end + 1) }

function readValue(text: string): { value: string; rest: string } {
  const quote = text[0]
  if (quote === '"' || quote === "'") {
    const end = closing(text, quote)
    if (end > 0) {
      const inner = text.slice(1, end)
      return { value: quote === "'" ? inner : inner.replace(/\\([nrt"\\$])/g, (_, char: string) => ESCAPES[char] ?? char), rest: afterLine(text.slice(end + 1)) }
    }
  }
  const line = text.split('\n', 1)[0]!
  return { value: line.replace(/(^|[ \t])#.*$/, '').trim(), rest: afterLine(text) }   // an unclosed quote is a character of the value
}
function closing(text: string, quote: string): number {
  for (let at = 1; at < text.length; at++) {
    if (quote === '"' && text[at] === '\\') at++
    else if (text[at] === quote) return at
  }
  return -1
}

/** What the process was given wins over the file. */
export const withEnvFile = (real: Readonly<Record<string, string | undefined>>, file: Readonly<Record<string, string>>): Record<string, string | undefined> =>
  Object.assign(Object.create(null) as Record<string, string | undefined>, file, Object.fromEntries(Object.entries(real).filter(([, value]) => value !== undefined)))
