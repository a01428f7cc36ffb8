/**
 * The asks that wait for a person, and who could answer: clients attached to a session, or anybody who lists them. Knows no HTTP.
 * Invariants: an ask has one answer, the first; it is about the very call that it shows and no other; where nobody is left who could answer, it is withdrawn, and that means no.
 */
import { randomUUID } from 'node:crypto'
import { onAbort } from '../agent/abort.js'
import type { ApprovalAnswer, ApprovalRequest, Approver } from '../agent/services.js'

export interface Ask extends Omit<ApprovalRequest, 'signal'> { readonly id: string; readonly since: string }
/** A client that can put asks to a person. */
export interface Attendant {
  asked(ask: Ask): void
  /** Answered by somebody, or withdrawn. */
  settled(id: string): void
}
interface Open { readonly ask: Ask; readonly audience: string; readonly patient: boolean; settle(answer: ApprovalAnswer | undefined): void }

export class Asks {
  readonly #open = new Map<string, Open>()
  /** By session. */
  readonly #attendants = new Map<string, Set<Attendant>>()

  list(): readonly Ask[] { return [...this.#open.values()].map(({ ask }) => ask) }
  /** False when it was answered already, was withdrawn, or never was. */
  answer(id: string, answer: ApprovalAnswer): boolean {
    const open = this.#open.get(id)
    open?.settle(answer)
    return open !== undefined
  }

  /** Attends a session: told at once of the asks that are open there. What is returned ends it. */
  attend(session: string, attendant: Attendant): () => void {
    const all = this.#attendants.get(session) ?? new Set()
    this.#attendants.set(session, all.add(attendant))
    for (const { ask, audience } of this.#open.values()) if (audience === session) attendant.asked(ask)
    return () => {
      all.delete(attendant)
      if (all.size > 0) return
      if (this.#attendants.get(session) === all) this.#attendants.delete(session)
      for (const { audience, patient, settle } of this.#open.values()) if (audience === session && !patient) settle(undefined)
    }
  }

  /** Puts the asks of a run, and of the runs inside it, to those who attend `audience()`. A patient one waits for whoever lists it, as long as an ask may wait. */
  approver(audience: () => string | undefined, patient: boolean): Approver {
    return ({ signal, ...request }) => {
      const ask: Ask = { id: randomUUID(), since: new Date().toISOString(), ...request }
      return this.#put(ask, audience() ?? request.session, patient, signal)
    }
  }
  async #put(ask: Ask, audience: string, patient: boolean, signal: AbortSignal): Promise<ApprovalAnswer | undefined> {
    const attendants = () => this.#attendants.get(audience) ?? []
    if (!patient && !this.#attendants.has(audience)) return undefined
    let off = () => {}
    try {
      return await new Promise(settle => {
        this.#open.set(ask.id, { ask, audience, patient, settle })
        off = onAbort(signal, () => { settle(undefined) })
        for (const attendant of attendants()) attendant.asked(ask)
      })
    } finally {
      off()
      this.#open.delete(ask.id)
      for (const attendant of attendants()) attendant.settled(ask.id)
    }
  }
}
