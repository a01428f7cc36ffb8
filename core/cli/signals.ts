/** Ctrl-C and SIGTERM during a command: the first asks the work to stop, the second ends the process at once. */
export interface Signals {
  /** What the first signal does, once there is something to stop. */
  first: (name: string) => void
  /** The exit code that the signal asks for: 130 or 143; undefined when none came. */
  readonly code: number | undefined
  off(): void
}

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

export function onSignals(): Signals {
  let code: number | undefined
  const handlers = Object.entries(CODES).map(([name, exit]) => {
    const handler = () => {
      if (code !== undefined) process.exit(exit)
      code = exit
      signals.first(name)
    }
    process.on(name as NodeJS.Signals, handler)
    return () => { process.off(name as NodeJS.Signals, handler) }
  })
  const signals: Signals = { first: () => {}, get code() { return code }, off: () => { for (const off of handlers) off() } }
  return signals
}
