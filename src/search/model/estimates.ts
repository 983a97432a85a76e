/** Expected values of extents and conditions, where loop variables run evenly over ranges and lengths of segments are given. */
import { linear } from '../../analysis/integers/linear.ts'
import { exactly } from '../../ir/evaluate.ts'
import type { Expr, Load } from '../../ir/expr.ts'
import { freeVars, someExpr, walkExpr } from '../../ir/expr-tree.ts'
import { remembered } from '../../ir/remembered.ts'
import { keyOf } from '../../ir/structural-equality.ts'

/** A loop variable runs evenly over `lo … lo + extent - 1`. */
export interface Range {
  readonly lo: number
  readonly extent: number
}

/** Values and ranges known at an expression. */
export interface Known {
  readonly params: ReadonlyMap<string, number>
  readonly ranges: ReadonlyMap<string, Range>
  /** By the key of a segment. */
  readonly lengths: ReadonlyMap<string, number>
  /** Share of coordinate arrays that is not padding. */
  readonly filled: ReadonlyMap<string, number>
}

/** `offsets[at + 1] - offsets[at]`. */
export interface Segment {
  readonly key: string
  readonly offsets: string
  /** Variables that tell it from others. */
  readonly vars: ReadonlySet<string>
}

interface Sum {
  readonly constant: number
  readonly terms: readonly { readonly term: Expr; readonly by: number }[]
  readonly segments: readonly { readonly segment: Segment; readonly by: number }[]
}

/** An integer expression as a sum in which differences of neighbouring offsets are lengths. */
const sumOf = remembered((e: Expr): Sum => {
  const { constant, terms } = linear(e)
  const rest = new Map(terms)
  const segments: { segment: Segment; by: number }[] = []
  for (const [key, { term, coefficient }] of terms) {
    if (term.kind !== 'load' || coefficient >= 0 || !rest.has(key)) continue
    const next = [...rest].find(([, t]) => t.coefficient === -coefficient && follows(t.term, term))
    if (!next) continue
    rest.delete(key)
    rest.delete(next[0])
    segments.push({ segment: { key, offsets: term.buffer, vars: freeVars(term) }, by: -coefficient })
  }
  return {
    constant,
    terms: [...rest.values()].map((t) => ({ term: t.term, by: t.coefficient })),
    segments,
  }
})

/** True if `next` is the element following `at` in the same buffer. */
function follows(next: Expr, at: Load): boolean {
  if (next.kind !== 'load' || next.buffer !== at.buffer || next.index.length !== 1) return false
  const [a, b] = [linear(next.index[0]!), linear(at.index[0]!)]
  return (
    a.constant === b.constant + 1 &&
    a.terms.size === b.terms.size &&
    [...a.terms].every(([key, t]) => b.terms.get(key)?.coefficient === t.coefficient)
  )
}

const isSum = (e: Expr): boolean =>
  e.kind === 'binary' && e.dtype === 'i32' && (e.op === 'add' || e.op === 'sub')

/** The segments whose lengths an expression depends on. */
export const segmentsIn = remembered((e: Expr): readonly Segment[] => {
  const out = new Map<string, Segment>()
  const inside = new Set<Expr>()
  walkExpr(e, (x) => {
    if (!isSum(x) || inside.has(x)) return
    for (const { segment } of sumOf(x).segments) out.set(segment.key, segment)
  })
  return [...out.values()]
})

/** Expected value; NaN if unknown. Lengths may be means, so quotients round like those of integers. */
export function expected(e: Expr, k: Known): number {
  switch (e.kind) {
    case 'const':
      return e.value
    case 'var': {
      const known = k.params.get(e.name)
      if (known !== undefined) return known
      const range = k.ranges.get(e.name)
      return range?.extent === 1 ? range.lo : Number.NaN
    }
    case 'binary': {
      if (isSum(e)) {
        const { constant, terms, segments } = sumOf(e)
        let sum = constant
        for (const { term, by } of terms) sum += by * expected(term, k)
        for (const { segment, by } of segments) sum += by * (k.lengths.get(segment.key) ?? Number.NaN)
        return sum
      }
      return (
        operation(e.op, expected(e.a, k), expected(e.b, k)) ?? exactly(e)(expected(e.a, k), expected(e.b, k))
      )
    }
    case 'unary':
    case 'cast':
      return exactly(e)(expected(e.x, k), 0)
    case 'select': {
      const cond = shareOf(e.cond, k)
      return cond === 1 ? expected(e.then, k) : cond === 0 ? expected(e.else, k) : Number.NaN
    }
    case 'call':
      return Number.NaN
    default:
      return Number.NaN
  }
}

function operation(op: string, a: number, b: number): number | undefined {
  switch (op) {
    case 'mul':
      return a * b
    case 'div':
    case 'quo':
      return b === 0 ? 0 : Math.floor(a / b)
    case 'mod':
    case 'rem':
      return b === 0 ? 0 : a - b * Math.floor(a / b)
    case 'min':
      return Math.min(a, b)
    case 'max':
      return Math.max(a, b)
    default:
      return undefined
  }
}

/** `constant + Σ by · variable`, over variables that run over more than one value. */
export interface Affine {
  readonly constant: number
  readonly by: ReadonlyMap<string, number>
}

/** An affine form of the expression; `null` if it is not affine or a term is unknown. */
export function affineOf(e: Expr, k: Known): Affine | null {
  const { constant, terms, segments } = sumOf(e)
  const by = new Map<string, number>()
  let sum = constant
  for (const { segment, by: n } of segments) sum += n * (k.lengths.get(segment.key) ?? Number.NaN)
  for (const { term, by: n } of terms) {
    const value = expected(term, k)
    if (!Number.isNaN(value)) sum += n * value
    else if (term.kind === 'var' && k.ranges.has(term.name)) by.set(term.name, (by.get(term.name) ?? 0) + n)
    else {
      const scaled = scaledVariable(term, k)
      if (!scaled) return null
      by.set(scaled.name, (by.get(scaled.name) ?? 0) + n * scaled.by)
    }
  }
  return Number.isNaN(sum) ? null : { constant: sum, by }
}

/** A variable times a size. */
function scaledVariable(e: Expr, k: Known): { readonly name: string; readonly by: number } | null {
  if (e.kind !== 'binary' || e.op !== 'mul') return null
  const [v, factor] = e.a.kind === 'var' && k.ranges.has(e.a.name) ? [e.a, e.b] : [e.b, e.a]
  const by = expected(factor, k)
  return v.kind === 'var' && k.ranges.has(v.name) && !Number.isNaN(by) ? { name: v.name, by } : null
}

/** Assumed probability of a condition about which nothing is known. */
const UNKNOWN = 0.5

/** The expected share of cases in which a condition holds. */
export function shareOf(e: Expr, k: Known): number {
  if (e.kind === 'const') return e.value === 0 ? 0 : 1
  if (e.kind === 'unary' && e.op === 'not') return 1 - shareOf(e.x, k)
  if (e.kind !== 'binary') return UNKNOWN
  const below = (a: Expr, b: Expr, reach: number): number => belowShare(a, b, reach, k)
  switch (e.op) {
    case 'and':
      return shareOf(e.a, k) * shareOf(e.b, k)
    case 'or':
      return 1 - (1 - shareOf(e.a, k)) * (1 - shareOf(e.b, k))
    case 'lt':
      return below(e.a, e.b, 0)
    case 'le':
      return below(e.a, e.b, 1)
    case 'gt':
      return below(e.b, e.a, 0)
    case 'ge':
      return below(e.b, e.a, 1)
    case 'eq':
      return equalShare(e.a, e.b, k)
    case 'ne':
      return 1 - equalShare(e.a, e.b, k)
    default:
      return UNKNOWN
  }
}

/** `a < b + reach`, of integers. */
function belowShare(a: Expr, b: Expr, reach: number, k: Known): number {
  const [left, right] = [affineOf(a, k), affineOf(b, k)]
  if (!left || !right) return paddingShare(a, k) ?? paddingShare(b, k) ?? UNKNOWN
  const by = new Map(left.by)
  for (const [name, n] of right.by) by.set(name, (by.get(name) ?? 0) - n)
  let bound = right.constant - left.constant + reach
  const digits: { stride: number; extent: number }[] = []
  for (const [name, n] of by) {
    const { lo, extent } = k.ranges.get(name)!
    if (n === 0) continue
    // A falling digit counts from its other end.
    bound -= n > 0 ? n * lo : n * (lo + extent - 1)
    digits.push({ stride: Math.abs(n), extent })
  }
  return countBelow(digits, bound)
}

/** The share of sums of digits that are below a bound: exact of numbers in mixed radix, otherwise as if evenly spread. */
function countBelow(digits: { stride: number; extent: number }[], bound: number): number {
  if (digits.length === 0) return bound > 0 ? 1 : 0
  digits.sort((a, b) => a.stride - b.stride)
  let [dense, total, greatest] = [true, 1, 0]
  for (const { stride, extent } of digits) {
    if (stride !== digits[0]!.stride * total) dense = false
    total *= extent
    greatest += stride * (extent - 1)
  }
  if (total === 0) return 0
  const values = dense ? total : greatest + 1
  const below = dense ? Math.ceil(bound / digits[0]!.stride) : bound
  return Math.min(1, Math.max(0, below / values))
}

function equalShare(a: Expr, b: Expr, k: Known): number {
  const [left, right] = [affineOf(a, k), affineOf(b, k)]
  if (!left || !right) return UNKNOWN
  const names = [...left.by.keys(), ...right.by.keys()]
  if (names.length === 0) return left.constant === right.constant ? 1 : 0
  return 1 / Math.max(1, ...names.map((n) => k.ranges.get(n)!.extent))
}

/** A coordinate that is compared with its extent: whether there is one. */
function paddingShare(e: Expr, k: Known): number | undefined {
  let share: number | undefined
  someExpr(e, (x) => {
    if (x.kind === 'load') share ??= k.filled.get(x.buffer)
    return share !== undefined
  })
  return share
}

/** Key that distinguishes accesses. */
export const accessKey = (e: Expr): string => keyOf(e)
