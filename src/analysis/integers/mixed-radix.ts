/** Mixed radix: sums `Σ stride · digit` whose value determines the digits, each from 0 up to its extent. */
import { type Expr, int, mul } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import type { For } from '../../ir/statements/loops.ts'
import type { Linear } from './linear.ts'

export interface Digit<T> {
  /** The loop or other object that runs over the digit. */
  readonly of: T
  readonly stride: Expr
  /** The number of values; undefined if unknown, and then no digit is above. */
  readonly extent: Expr | undefined
}

export interface MixedRadix<T> {
  /** The digits, least significant first. */
  readonly digits: readonly Digit<T>[]
  /**
   * True if every stride but the first is the product of the stride and the extent below, so that no value is skipped.
   */
  readonly dense: boolean
}

/**
 * Returns a sum as a number in mixed radix: the least stride is a positive constant, and each other stride is the
 * product of the stride and the extent below or, for constants, greater. Returns undefined for other sums. A sum
 * without terms is 0.
 */
export function mixedRadix<T>(terms: readonly Digit<T>[]): MixedRadix<T> | undefined {
  const ascending = (a: Digit<T>, b: Digit<T>): number =>
    numberOf(a.stride) - numberOf(b.stride) || numberOf(a.extent) - numberOf(b.extent)
  const [first, ...rest] = [...terms].sort(ascending)
  if (!first) return { digits: [], dense: true }
  if (first.stride.kind !== 'const' || !(first.stride.value > 0)) return undefined
  const digits = [first]
  let dense = true
  while (rest.length > 0) {
    const { extent, stride } = digits.at(-1)!
    if (!extent) return undefined
    const radix = mul(extent, stride)
    let at = rest.findIndex((t) => sameExpr(t.stride, radix) || sameExpr(t.stride, mul(stride, extent)))
    if (at < 0) {
      const beyond = radix.kind === 'const' && rest.every((t) => numberOf(t.stride) >= radix.value)
      if (!beyond || rest.some((t) => t.stride.kind !== 'const')) return undefined
      dense = false
      at = 0
    }
    digits.push(...rest.splice(at, 1))
  }
  return { digits, dense }
}

/** Returns the terms of a linear form as digits; undefined if a term is not a loop. */
export function loopDigits(
  { terms }: Linear,
  loopOf: (name: string) => For | undefined,
): Digit<For>[] | undefined {
  const digits: Digit<For>[] = []
  for (const { term, coefficient } of terms.values()) {
    const of = term.kind === 'var' ? loopOf(term.name) : undefined
    if (!of) return undefined
    digits.push({ of, stride: int(coefficient), extent: of.extent })
  }
  return digits
}

/** Returns the stride of a digit of a linear form. */
export const strideOf = (d: Digit<unknown>): number => numberOf(d.stride)

/** Returns the value of a constant; a large number for other expressions, which sort last. */
const numberOf = (e: Expr | undefined): number => (e?.kind === 'const' ? e.value : Number.MAX_VALUE)
