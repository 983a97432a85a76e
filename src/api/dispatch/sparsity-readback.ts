/** Asynchronous readback of measurements, one at a time; a request during a readback is served after it. */
export class SparsityReadback {
  #reading: Promise<void> | undefined
  #again: (() => void) | undefined

  /** Queues a readback. Its errors are dropped here, and reported by the next call that waits. */
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
