/** Mixed radix: sums `Σ stride · digit` whose digits, each from 0 up to its extent, the value tells. */
import { type Expr, int, mul } from '../../ir/expr.ts'
import type { For } from '../../ir/loops.ts'
import { sameExpr } from '../../ir/structural-equality.ts'
import type { Linear } from './linear.ts'

export interface Digit<T> {
  /** What runs over the digit. */
  readonly of: T
  readonly stride: Expr
  /** Where it is not known, no digit is above. */
  readonly extent: Expr | undefined
}

export interface MixedRadix<T> {
  /** Least significant first. */
  readonly digits: readonly Digit<T>[]
  /** Every stride but the first is just the product of the one below and its extent: no value is left out in between. */
  readonly dense: boolean
}

/**
 * A sum as a number in mixed radix: the least stride is a positive constant, each other one the product of the one below
 * and its extent, or, of constants, more than that. `undefined` where it is no such sum; without terms it is 0.
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

/** The terms of a linear form as digits; `undefined` where one is no loop. */
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

/** Of a digit of a linear form. */
export const strideOf = (d: Digit<unknown>): number => numberOf(d.stride)

/** What is no constant comes last. */
const numberOf = (e: Expr | undefined): number => (e?.kind === 'const' ? e.value : Number.MAX_VALUE)
