/** A line chart as SVG, by hand: one line a series, its figures beside it. Knows nothing of what is drawn. */
export interface Series { readonly name: string; readonly unit: string; readonly colour: string; readonly points: readonly (readonly [x: number, y: number])[] }

const WIDTH = 860, HEIGHT = 300, LEFT = 56, RIGHT = 170, TOP = 34, BOTTOM = 40

export function chart(title: string, along: string, series: readonly Series[]): string {
  const all = series.flatMap(one => one.points), maxX = Math.max(1, ...all.map(([x]) => x)), maxY = nice(Math.max(1, ...all.map(([, y]) => y)))
  const x = (value: number) => round(LEFT + value / maxX * (WIDTH - LEFT - RIGHT)), y = (value: number) => round(HEIGHT - BOTTOM - value / maxY * (HEIGHT - TOP - BOTTOM))
  const grid = [0, 0.25, 0.5, 0.75, 1].map(part => `<path d="M${LEFT} ${y(part * maxY)}H${WIDTH - RIGHT}" stroke="#ddd"/><text x="${LEFT - 8}" y="${y(part * maxY) + 4}" text-anchor="end">${round(part * maxY)}</text>`)
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(part => `<text x="${x(part * maxX)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${Math.round(part * maxX)}</text>`)
  const lines = series.map(({ points, colour, name, unit }, index) => {
    const path = points.map(([px, py], at) => `${at === 0 ? 'M' : 'L'}${x(px)} ${y(py)}`).join('')
    const last = points.at(-1)?.[1] ?? 0
    return `<path d="${path}" fill="none" stroke="${colour}" stroke-width="2"/><text x="${WIDTH - RIGHT + 10}" y="${TOP + 14 + index * 20}" fill="${colour}">${name}: ${round(last)} ${unit}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/><text x="${LEFT}" y="20" font-size="14">${title}</text>${[...grid, ...ticks].join('')}<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${along}</text>${lines.join('')}</svg>\n`
}
const round = (value: number): number => Math.round(value * 10) / 10
/** The next of 1, 2 and 5 times a power of ten, so that the axis has round figures. */
function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].map(factor => factor * power).find(one => one >= value)!
}
