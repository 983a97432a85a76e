/** A generator's choices as numbers: 0 is always the simplest, so that fast-check's shrinking simplifies what is built. */
import fc from 'fast-check'

export class Choices {
  readonly #numbers: readonly number[]
  #next = 0

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers
  }

  /** From 0 to n - 1; 0 once the numbers are used up. */
  below(n: number): number {
    return (this.#numbers[this.#next++] ?? 0) % Math.max(1, n)
  }

  /** From `low` to `high`. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  pick<T>(xs: readonly T[]): T {
    return xs[this.below(xs.length)]!
  }

  chance(percent: number): boolean {
    return this.below(100) >= 100 - percent
  }

  /** Some of `xs`, in random order. */
  shuffle<T>(xs: readonly T[]): T[] {
    const rest = [...xs]
    const out: T[] = []
    while (rest.length > 0) out.push(...rest.splice(this.below(rest.length), 1))
    return out
  }
}

export const choiceNumbers = (length: number): fc.Arbitrary<readonly number[]> =>
  fc.array(fc.nat(9999), { minLength: length, maxLength: length, size: 'max' })
