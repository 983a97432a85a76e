/** Errors of launches that raise no fault: writes to missing elements, lists over capacity. Launches record them in memory. */

/** Outcome of all launches of one program on its data; an error of the latest launches is reported once. */
export class Outcome {
  readonly #check: () => Promise<void>
  #isOpen = false

  /** @param check - Throws the recorded error; called when no launch is in flight */
  constructor(check: () => Promise<void>) {
    this.#check = check
  }

  markQueued(): void {
    this.#isOpen = true
  }

  async settle(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    await this.#check()
  }

  /** Drops a pending check because its memory was freed. */
  forget(): void {
    this.#isOpen = false
  }
}
