/** What launches do wrong without a fault: writes that find no element, lists without room. They leave it in memory. */

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

  /** What it would look at is gone. */
  forget(): void {
    this.#isOpen = false
  }
}
