/** What launches do wrong without a fault: writes that find no element, lists without room. They leave it in memory. */

/** Of all launches of one program on its data: what the latest of them did wrong is told once. */
export class Outcome {
  readonly #look: () => Promise<void>
  #isOpen = false

  /** @param look throws what is wrong, when nothing of it is under way */
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
