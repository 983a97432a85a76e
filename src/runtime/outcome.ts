/** Errors of launches that raise no fault: writes to missing elements, lists over capacity. Launches record them in memory. */

/** Outcome of all launches of one program on its data; an error of the latest launches is reported once. */
export class Outcome {
  readonly #look: () => Promise<void>
  #isOpen = false

  /** @param look throws the recorded error, when none of the launches is in flight */
  constructor(look: () => Promise<void>) {
    this.#look = look
  }

  queued(): void {
    this.#isOpen = true
  }

  async settle(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    await this.#look()
  }

  /** Drops a pending check because its memory was freed. */
  forget(): void {
    this.#isOpen = false
  }
}
