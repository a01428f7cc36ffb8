/**
 * What turns cost: prices of models, the cost of a reply, and the purse that a turn and the turns inside it spend from. Pure but for the purse's own sum; knows no loop and no config file.
 * Amounts are in the currency of the prices, US dollars unless somebody writes others.
 */
import type { Usage } from './vocabulary.js'

/** For a million tokens. `cached` is for input that the endpoint had in its cache; the price of other input when it is left out. */
export interface Price { readonly input: number; readonly cached?: number | undefined; readonly output: number }
/** By `<id>/<model>`, or by `<id>` for all its models. */
export type Prices = Readonly<Record<string, Price>>

export function priceOf(prices: Prices, model: string): Price | undefined {
  const slash = model.indexOf('/')
  return own(prices, model) ?? (slash < 0 ? undefined : own(prices, model.slice(0, slash)))
}
const own = (prices: Prices, key: string): Price | undefined => Object.hasOwn(prices, key) ? prices[key] : undefined

/** Cached tokens are a part of the input, and reasoning a part of the output, as endpoints count them. */
export function costOf({ inputTokens, outputTokens, cachedTokens = 0 }: Usage, { input, cached = input, output }: Price): number {
  const fromCache = Math.min(Math.max(cachedTokens, 0), inputTokens)
  return ((inputTokens - fromCache) * input + fromCache * cached + outputTokens * output) / 1_000_000
}
/** The usage with its cost. What the endpoint says that it costs stands where no price is known. */
export const priced = (usage: Usage, price: Price | undefined): Usage => price ? { ...usage, cost: costOf(usage, price) } : usage

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0 }
export function addUsage(a: Usage, b: Usage): Usage {
  const sum = (x: number | undefined, y: number | undefined) => x === undefined && y === undefined ? undefined : (x ?? 0) + (y ?? 0)
  const cachedTokens = sum(a.cachedTokens, b.cachedTokens), reasoningTokens = sum(a.reasoningTokens, b.reasoningTokens), cost = sum(a.cost, b.cost)
  return {
    inputTokens: a.inputTokens + b.inputTokens, outputTokens: a.outputTokens + b.outputTokens,
    ...(cachedTokens !== undefined && { cachedTokens }), ...(reasoningTokens !== undefined && { reasoningTokens }), ...(cost !== undefined && { cost }),
  }
}

/** What a turn spends, with the turns that its tools start: those count here and above. */
export class Purse {
  readonly #above: Purse | undefined
  #spent = 0
  constructor(above?: Purse) { this.#above = above }
  spend(cost: number): void {
    this.#spent += cost
    this.#above?.spend(cost)
  }
  /** Of the outermost turn: that is what a limit is about. */
  get total(): number { return this.#above ? this.#above.total : this.#spent }
}

/** `$0.42`, `$0.00013`: two digits that say something. */
export function dollars(cost: number): string {
  if (cost === 0) return '$0'
  const digits = Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(Math.abs(cost)))))
  return `$${cost.toFixed(digits)}`
}
