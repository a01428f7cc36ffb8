/** What a soak is given: where its figures go, and who hears of one that is out of bounds. */
export interface Report {
  say(line: string): void
  check(holds: boolean, problem: string): void
}
export type Soak = (report: Report) => Promise<void>
