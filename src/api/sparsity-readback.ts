/** What runs found is read back one reading at a time, while nobody waits: what is found meanwhile is read after it. */
export class SparsityReadback {
  #reading: Promise<void> | undefined
  #again: (() => void) | undefined

  /** What goes wrong is told by the next call that waits. */
  later(read: () => Promise<void>): void {
    if (this.#reading) {
      this.#again = () => this.later(read)
      return
    }
    this.#reading = read()
      .catch(() => {})
      .then(() => {
        this.#reading = undefined
        const again = this.#again
        this.#again = undefined
        again?.()
      })
  }

  async known(): Promise<void> {
    while (this.#reading) await this.#reading
  }
}
