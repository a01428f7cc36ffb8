/** The last errors and warnings that the log holds of each plugin, for whoever asks why. A sink of the log; a few lines a plugin, so it never grows. */
import type { Level, LogRecord } from './log.js'

export interface RecentError { readonly ts: string; readonly level: 'warn' | 'error'; readonly message: string; /** So often in a row. */ readonly times: number }

const KEPT = 5, LONGEST = 500

export const isTrouble = (level: Level): level is 'warn' | 'error' => level === 'warn' || level === 'error'

export class RecentErrors {
  readonly #byPlugin = new Map<string, readonly RecentError[]>()

  readonly sink = ({ ts, level, message, plugin }: LogRecord): void => {
    if (plugin === undefined || !isTrouble(level)) return
    const before = this.of(plugin), last = before.at(-1), text = message.slice(0, LONGEST)
    const again = last?.message === text
    this.#byPlugin.set(plugin, [...(again ? before.slice(0, -1) : before), { ts, level, message: text, times: again ? last.times + 1 : 1 }].slice(-KEPT))
  }
  /** Oldest first. */
  of(plugin: string): readonly RecentError[] { return this.#byPlugin.get(plugin) ?? [] }
}
