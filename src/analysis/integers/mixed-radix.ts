/**
 * Mixed radix: sums `Σ stride · digit` whose value determines the digits, each from 0 up to its extent; quotient and
 * rest by a constant, and whether runs of neighbouring elements begin at its multiples (contiguity and alignment).
 */
import { add, div, type Expr, int, lt, mod, mul } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import type { For } from '../../ir/statements/loops.ts'
import { keepTerms, type Linear, linear, mapNumbers, minus, sumExpr, termsWith } from './linear.ts'

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

export const strideOf = (d: Digit<unknown>): number => numberOf(d.stride)

/** Returns the value of a constant; a large number for other expressions, which sort last. */
const numberOf = (e: Expr | undefined): number => (e?.kind === 'const' ? e.value : Number.MAX_VALUE)

/**
 * Returns `quotient` and `rest` of `e = t * quotient + rest`. Evident multiples of `t` in the sum become part of the
 * quotient; the other terms are divided.
 */
export function splitBy(e: Expr, t: number): { readonly quotient: Expr; readonly rest: Expr } {
  const sum = linear(e)
  const constant = sum.constant - t * Math.floor(sum.constant / t)
  const over = keepTerms({ ...sum, constant }, ({ coefficient }) => coefficient % t !== 0)
  const quotient = sumExpr(mapNumbers(minus(sum, over), (n) => n / t))
  const rest = sumExpr(over)
  if (over.terms.size === 0) return { quotient, rest }
  return { quotient: add(quotient, div(rest, int(t))), rest: mod(rest, int(t)) }
}

/** Returns the index of a run's first element, if the elements along a loop are neighbours; otherwise undefined. */
export function startOfRun(index: Expr, along: string): Linear | undefined {
  const sum = linear(index)
  const [own, ...others] = termsWith(sum, along)
  return own?.coefficient === 1 && own.term.kind === 'var' && others.length === 0
    ? keepTerms(sum, (t) => t !== own)
    : undefined
}

interface Divisibility {
  divisor(e: Expr): number
  isMultiple(e: Expr, by: number): boolean
}

/**
 * Returns the reason why the runs of `run` neighbours along a loop do not begin at multiples of `run` in the last
 * dimension; undefined if they do.
 */
export function notInRuns(
  index: readonly Expr[],
  along: { readonly var: string; readonly name?: string } | undefined,
  run: number,
  facts: Divisibility,
): string | undefined {
  const e = index.at(-1)
  if (!along || !e) return 'it is one element'
  const start = startOfRun(e, along.var)
  if (!start || index.slice(0, -1).some((x) => mentions(x, along.var)))
    return `${along.name ?? along.var} does not go along it`
  for (const { term, coefficient } of start.terms.values())
    if ((coefficient * facts.divisor(term)) % run !== 0) return `${printExpr(e)} may begin anywhere`
  return start.constant % run === 0 ? undefined : `${printExpr(e)} begins between`
}

/**
 * Returns the bound of a run's first element, if the bound is a multiple of the run's width: it then holds for all
 * elements of the run, or fails for all. Returns other bounds unchanged.
 */
export function boundOfRun(g: Expr, lane: string, width: number, facts: Divisibility): Expr {
  if (!mentions(g, lane) || g.kind !== 'binary' || g.op !== 'lt' || mentions(g.b, lane)) return g
  const first = substitute(g.a, new Map([[lane, int(0)]]))
  const whole = startOfRun(g.a, lane) && facts.isMultiple(first, width)
  return whole && facts.isMultiple(g.b, width) ? lt(first, g.b) : g
}
