/** What a command printed, as a picture of a terminal: an SVG that plays itself once, line after line, and stays. Pure. */

const COLUMNS = 104, LINE = 17, CHAR = 7.8, PAD = 16
const SECONDS_A_LINE = 0.12

/** The lines of a picture, as they were printed. */
export const linesOf = (svg: string): string[] => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, line]) => line!.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&'))

export function picture(lines: readonly string[]): string {
  const shown = lines.flatMap(line => wrapped(line).map(part => ({ part, kind: kindOf(line) }))), width = Math.round(COLUMNS * CHAR + 2 * PAD), height = shown.length * LINE + 2 * PAD
  const texts = shown.map(({ part, kind }, row) => `<text x="${PAD}" y="${PAD + 13 + row * LINE}" class="${kind}" style="animation-delay:${(row * SECONDS_A_LINE).toFixed(2)}s">${escaped(part)}</text>`)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="hx demo in a terminal">
<style>
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #d7dae0; white-space: pre; animation: come .01s linear both }
.head { font-weight: bold; fill: #fff } .dim { fill: #8b93a1 } .no { fill: #ff7b72 } .yes { fill: #7ee787 }
@keyframes come { from { opacity: 0 } to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
</style>
<rect width="100%" height="100%" rx="8" fill="#16191f"/>
${texts.join('\n')}
</svg>
`
}

const kindOf = (line: string): string => line.startsWith('▌') ? 'head' : line.startsWith('  ') || line.startsWith('[') ? 'dim' : /^(?:Blocked|Non-interactive|hx: )/.test(line) ? 'no' : /^(?:reloaded|unloaded)/.test(line) ? 'yes' : 'plain'
const escaped = (line: string): string => line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
/** At a blank, as far as there is one. */
function wrapped(line: string): string[] {
  if (line.length <= COLUMNS) return [line]
  const blank = line.lastIndexOf(' ', COLUMNS), at = blank > COLUMNS / 2 ? blank : COLUMNS
  return [line.slice(0, at), ...wrapped(line.slice(at).trimStart())]
}
