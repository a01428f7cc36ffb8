/**
 * The one error class of the host and the one table of its codes. Knows nothing else of core; everything may import it.
 * Wording (STYLE): lower case; the thing first, in double quotes; expected, received, where; then what to do.
 */

/** Every code, with the exit code of a command that ends with it and what a person should know about it. README.md's troubleshooting section is this table. */
export const CODES = {
  usage: { exit: 2, about: 'the command line is wrong' },
  config_invalid: { exit: 2, about: 'the config file has a problem; the message names file, line and column' },
  config_missing: { exit: 2, about: 'no config file could be found or edited' },
  no_model: { exit: 2, about: 'no model is ready: no key, no local server, no --offline' },
  unknown_id: { exit: 2, about: 'an id or name that does not exist' },
  untrusted: { exit: 3, about: 'the folder is not trusted, so nothing of it was read' },
  held: { exit: 3, about: 'a tool may have made this change, so it waits for "hx plugins reload --held"' },
  plugin_invalid: { exit: 1, about: 'a module does not have the exports of a plugin' },
  plugin_failed: { exit: 1, about: 'a plugin threw while it was loaded' },
  plugin_timeout: { exit: 1, about: 'a plugin did not finish loading or stopping in time' },
  module_not_found: { exit: 1, about: 'an import of a plugin leads nowhere' },
  module_syntax: { exit: 1, about: 'a plugin file does not parse; the message names file, line and column' },
  already_registered: { exit: 1, about: 'a tool, model, command, service or hook of that name belongs to another plugin' },
  stale_context: { exit: 1, about: 'a plugin used its ctx after it was unloaded' },
  state_not_plain: { exit: 1, about: 'ctx.state holds something that would keep the old version of the plugin alive' },
  hook_unknown: { exit: 1, about: 'a handler was registered for a hook that does not exist' },
  hook_invalid: { exit: 1, about: 'a handler was registered with a wrong argument or option' },
  service_missing: { exit: 1, about: 'a service was used that is not there, or not in inject' },
  session_missing: { exit: 2, about: 'there is no session of that id' },
  session_busy: { exit: 1, about: 'another process or turn writes this session' },
  session_archived: { exit: 3, about: 'the session is archived and takes no further step' },
  session_damaged: { exit: 1, about: 'the session file can not be read' },
  storage_failed: { exit: 1, about: 'something could not be written: disk full, read-only, or not yours' },
  outside_workspace: { exit: 1, about: 'a path lies outside the workspace' },
  protected_path: { exit: 1, about: 'a path that tools never reach' },
  model_failed: { exit: 1, about: 'the model endpoint failed' },
  aborted: { exit: 130, about: 'somebody stopped it' },
  daemon_missing: { exit: 1, about: 'no daemon is running for this config' },
  daemon_running: { exit: 0, about: 'a daemon already runs for this config' },
  daemon_busy: { exit: 1, about: 'the daemon has too many turns, or is about to stop' },
  protocol_mismatch: { exit: 1, about: 'client and daemon speak different versions' },
  internal: { exit: 1, about: 'a mistake of the host itself; please report it' },
} as const satisfies Record<string, { exit: number; about: string }>

export type ErrorCode = keyof typeof CODES

/** Where something stands: line and column count from 1. */
export interface Place { readonly file: string; readonly line?: number | undefined; readonly column?: number | undefined }

/** What the host throws. `message` is one complete sentence for a person; `code` is stable and for programs. */
export class HarnessError extends Error {
  readonly code: ErrorCode
  readonly place: Place | undefined
  constructor(code: ErrorCode, message: string, options: { place?: Place | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'HarnessError'
    this.code = code
    this.place = options.place
  }
  get exit(): number { return CODES[this.code].exit }
}

/** `file:line:column`, as far as known. */
export const at = (place: Place): string => [place.file, place.line, place.column].filter(part => part !== undefined).join(':')

/** The text of whatever was thrown: plugins throw strings, undefined and objects too. Never empty, and never throws itself. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message) || String(error.name)
    if (error === undefined || error === null || error === '') return `${error === '' ? 'an empty text' : error} was thrown`
    if (typeof error === 'string') return error
    try { return JSON.stringify(error) ?? String(error) } catch { return Object.prototype.toString.call(error) }        // a throwing toJSON or a cycle: the tag is all there is
  } catch {
    return UNREADABLE
  }
}
export const UNREADABLE = 'what was thrown can not be read'
/** What plugin code threw, as something that `instanceof` can be asked about: the traps of a proxy throw there too. */
export function readable(thrown: unknown): unknown {
  try { void (thrown instanceof Error); return thrown } catch { return new Error(UNREADABLE) }
}

/** What could not be written or opened, since the system refused it. */
export function notStored(what: string, error: unknown, file?: string): HarnessError {
  const full = ['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException | null)?.code ?? '')
  return new HarnessError('storage_failed', `${what} (${messageOf(error)}); ${full ? 'allow more open files (ulimit -n)' : 'check that the disk has space and the folder can be written'}`, { cause: error, place: file === undefined ? undefined : { file } })
}

/** A value as an error message shows it: quoted, cut at 80 characters. */
export function show(value: unknown): string {
  if (typeof value === 'function') return `a function${value.name ? ` (${value.name})` : ''}`
  if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'number') return String(value)     // JSON has no NaN
  let text: string
  try { text = JSON.stringify(value) ?? String(value) } catch { return typeof value }            // a cycle or a throwing getter
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}

/** The nearest of `names` to `word` (at most a third of its letters changed, by Levenshtein distance, case ignored), for "did you mean". */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  let best: string | undefined, least = Math.max(2, Math.floor(word.length / 3)) + 1
  for (const name of names) {
    const far = distance(word.toLowerCase(), name.toLowerCase())
    if (far < least) { best = name; least = far }
  }
  return best
}
/** `; did you mean "x"?` or nothing. */
export const didYouMean = (word: string, names: Iterable<string>): string => {
  const name = nearest(word, names)
  return name === undefined ? '' : `; did you mean "${name}"?`
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1))
    row = next
  }
  return row[b.length]!
}
