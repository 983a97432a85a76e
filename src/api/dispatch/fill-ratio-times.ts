/** Linear model of a schedule's time as a function of the fill ratio, fitted to measured times. */

/** Maximum number of measurements that are kept; older ones are dropped. */
const MOST = 32

export class FillRatioTimes {
  readonly #measured: { readonly covered: number; readonly milliseconds: number }[] = []

  add(covered: number, milliseconds: number): void {
    this.#measured.push({ covered, milliseconds })
    if (this.#measured.length > MOST) this.#measured.shift()
  }

  /** Milliseconds at a fill ratio, by least squares. `null` without measurements, or if only another fill ratio was measured. */
  at(covered: number): number | null {
    const all = this.#measured
    if (all.length === 0) return null
    const mean = (of: (m: (typeof all)[number]) => number): number =>
      all.reduce((sum, m) => sum + of(m), 0) / all.length
    const [x, y] = [mean((m) => m.covered), mean((m) => m.milliseconds)]
    const spread = mean((m) => (m.covered - x) ** 2)
    if (all.every((m) => m.covered === all[0]!.covered)) return covered === all[0]!.covered ? y : null
    return y + ((covered - x) * mean((m) => (m.covered - x) * (m.milliseconds - y))) / spread
  }
}
