/**
 * Headers as the SDK and the guard use them. Node's class of this name comes with the whole of `fetch`, which takes a sixth of a cold start to load,
 * so the build gives the SDK this one (core/rolldown.config.ts). Invariants: names are in lower case; several values of one name are joined, as HTTP says.
 */
export class Headers {
  readonly #values = new Map<string, string>()

  constructor(entries: Iterable<readonly [string, string]> = []) {
    for (const [name, value] of entries) this.append(name, value)
  }
  get(name: string): string | null { return this.#values.get(name.toLowerCase()) ?? null }
  has(name: string): boolean { return this.#values.has(name.toLowerCase()) }
  set(name: string, value: string): void { this.#values.set(name.toLowerCase(), String(value).trim()) }
  append(name: string, value: string): void {
    const before = this.get(name)
    this.set(name, before === null ? value : `${before}, ${value}`)
  }
  delete(name: string): void { this.#values.delete(name.toLowerCase()) }
  entries(): MapIterator<[string, string]> { return this.#values.entries() }
  [Symbol.iterator](): MapIterator<[string, string]> { return this.entries() }
}
