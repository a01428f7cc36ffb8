/** One line of a benchmark. `low` and `high` are the 10th and 90th percentile; `ratio` is the median over that of the row named in `baseline`. */
export interface Row {
  readonly name: string
  readonly unit: 'ns' | 'µs' | 'ms' | 'KB' | 'MB' | 'tokens/s' | 'packages'
  readonly median: number
  readonly low: number
  readonly high: number
  readonly ratio?: number | undefined
  readonly baseline?: string | undefined
}

export function row(name: string, unit: Row['unit'], samples: readonly number[], baseline?: Row): Row {
  const sorted = [...samples].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  const median = at(0.5)
  return { name, unit, median, low: at(0.1), high: at(0.9), ...(baseline && { ratio: median / baseline.median, baseline: baseline.name }) }
}
