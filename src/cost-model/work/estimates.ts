/** Expected values of extents and conditions: loop variables are uniform over ranges, lengths of segments given. */

import { linear } from '../../analysis/integers/linear.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { freeVars, someExpr, walkExpr } from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { isWord } from '../../ir/values/dtype.ts'
import { exactOperation } from '../../ir/values/evaluate.ts'
import { wordsFor } from '../../ir/values/packed-fields.ts'

/** A loop variable is uniformly distributed over `start … start + extent - 1`. */
export interface Range {
  readonly start: number
  readonly extent: number
}

/** Values and ranges known at an expression. */
export interface KnownValues {
  readonly params: ReadonlyMap<string, number>
  readonly ranges: ReadonlyMap<string, Range>
  /** By key of a segment. */
  readonly lengths: ReadonlyMap<string, number>
  /** By coordinate array, the share of entries that is not padding. */
  readonly filled: ReadonlyMap<string, number>
}

/** The segment `offsets[index] … offsets[index + 1] - 1` of an index array. */
export interface Segment {
  readonly key: string
  readonly offsets: string
  /** Variables on which the index depends. */
  readonly vars: ReadonlySet<string>
}

interface Sum {
  readonly constant: number
  readonly terms: readonly { readonly term: Expr; readonly coefficient: number }[]
  readonly segments: readonly { readonly segment: Segment; readonly coefficient: number }[]
}

/** An integer expression as a sum in which differences of neighbouring offsets are lengths. */
const sumOf = memoize((e: Expr): Sum => {
  const { constant, terms } = linear(e)
  const remaining = new Map(terms)
  const segments: { segment: Segment; coefficient: number }[] = []
  for (const [key, { term, coefficient }] of terms) {
    if (term.kind !== 'load' || coefficient >= 0 || !remaining.has(key)) continue
    const following = [...remaining].find(([, t]) => t.coefficient === -coefficient && follows(t.term, term))
    if (!following) continue
    remaining.delete(key)
    remaining.delete(following[0])
    segments.push({ segment: { key, offsets: term.buffer, vars: freeVars(term) }, coefficient: -coefficient })
  }
  return {
    constant,
    terms: [...remaining.values()].map((t) => ({ term: t.term, coefficient: t.coefficient })),
    segments,
  }
})

/** True if `next` is the element following `load` in the same buffer. */
function follows(next: Expr, load: Load): boolean {
  if (next.kind !== 'load' || next.buffer !== load.buffer || next.index.length !== 1) return false
  const [a, b] = [linear(next.index[0]!), linear(load.index[0]!)]
  return (
    a.constant === b.constant + 1 &&
    a.terms.size === b.terms.size &&
    [...a.terms].every(([key, t]) => b.terms.get(key)?.coefficient === t.coefficient)
  )
}

const isSum = (e: Expr): boolean =>
  e.kind === 'binary' && isWord(e.dtype) && (e.op === 'add' || e.op === 'sub')

/** The segments whose lengths an expression depends on. */
export const collectSegments = memoize((e: Expr): readonly Segment[] => {
  const segments = new Map<string, Segment>()
  const inside = new Set<Expr>()
  walkExpr(e, (x) => {
    if (!isSum(x) || inside.has(x)) return
    for (const { segment } of sumOf(x).segments) segments.set(segment.key, segment)
  })
  return [...segments.values()]
})

/** Expected value; NaN if unknown. Lengths may be means, so quotients round like those of integers. */
export function expectedValue(e: Expr, k: KnownValues): number {
  switch (e.kind) {
    case 'const':
      return e.value
    case 'var': {
      const param = k.params.get(e.name)
      if (param !== undefined) return param
      const range = k.ranges.get(e.name)
      return range?.extent === 1 ? range.start : Number.NaN
    }
    case 'binary': {
      if (isSum(e)) {
        const { constant, terms, segments } = sumOf(e)
        let sum = constant
        for (const { term, coefficient } of terms) sum += coefficient * expectedValue(term, k)
        for (const { segment, coefficient } of segments)
          sum += coefficient * (k.lengths.get(segment.key) ?? Number.NaN)
        return sum
      }
      return (
        applyOperation(e.op, expectedValue(e.a, k), expectedValue(e.b, k)) ??
        exactOperation(e)(expectedValue(e.a, k), expectedValue(e.b, k))
      )
    }
    case 'unary':
    case 'cast':
      return exactOperation(e)(expectedValue(e.x, k), 0)
    case 'select': {
      const probability = probabilityOf(e.cond, k)
      return probability === 1
        ? expectedValue(e.then, k)
        : probability === 0
          ? expectedValue(e.else, k)
          : Number.NaN
    }
    default:
      return Number.NaN
  }
}

function applyOperation(op: string, a: number, b: number): number | undefined {
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

/** `constant + Σ coefficient · variable`, over variables with more than one value. */
interface Affine {
  readonly constant: number
  readonly coefficients: ReadonlyMap<string, number>
}

/** An affine form of the expression; `null` if it is not affine or a term is unknown. */
export function affineOf(e: Expr, k: KnownValues): Affine | null {
  const { constant, terms, segments } = sumOf(e)
  const coefficients = new Map<string, number>()
  let sum = constant
  for (const { segment, coefficient: n } of segments) sum += n * (k.lengths.get(segment.key) ?? Number.NaN)
  for (const { term, coefficient: n } of terms) {
    const value = expectedValue(term, k)
    if (!Number.isNaN(value)) sum += n * value
    else if (term.kind === 'var' && k.ranges.has(term.name))
      coefficients.set(term.name, (coefficients.get(term.name) ?? 0) + n)
    else {
      const scaled = scaledVariable(term, k)
      if (!scaled) return null
      coefficients.set(scaled.name, (coefficients.get(scaled.name) ?? 0) + n * scaled.factor)
    }
  }
  return Number.isNaN(sum) ? null : { constant: sum, coefficients }
}

function scaledVariable(e: Expr, k: KnownValues): { readonly name: string; readonly factor: number } | null {
  if (e.kind !== 'binary' || e.op !== 'mul') return null
  const [v, size] = e.a.kind === 'var' && k.ranges.has(e.a.name) ? [e.a, e.b] : [e.b, e.a]
  const factor = expectedValue(size, k)
  return v.kind === 'var' && k.ranges.has(v.name) && !Number.isNaN(factor) ? { name: v.name, factor } : null
}

/** Assumed probability of a condition about which nothing is known. */
const UNKNOWN_PROBABILITY = 0.5

export function probabilityOf(e: Expr, k: KnownValues): number {
  if (e.kind === 'const') return e.value === 0 ? 0 : 1
  if (e.kind === 'unary' && e.op === 'not') return 1 - probabilityOf(e.x, k)
  if (e.kind !== 'binary') return UNKNOWN_PROBABILITY
  const below = (a: Expr, b: Expr, offset: number): number => probabilityBelow(a, b, offset, k)
  switch (e.op) {
    case 'and':
      return probabilityOf(e.a, k) * probabilityOf(e.b, k)
    case 'or':
      return 1 - (1 - probabilityOf(e.a, k)) * (1 - probabilityOf(e.b, k))
    case 'lt':
      return below(e.a, e.b, 0)
    case 'le':
      return below(e.a, e.b, 1)
    case 'gt':
      return below(e.b, e.a, 0)
    case 'ge':
      return below(e.b, e.a, 1)
    case 'eq':
      return probabilityEqual(e.a, e.b, k)
    case 'ne':
      return 1 - probabilityEqual(e.a, e.b, k)
    default:
      return UNKNOWN_PROBABILITY
  }
}

/** Probability of `a < b + offset`, for integers. */
function probabilityBelow(a: Expr, b: Expr, offset: number, k: KnownValues): number {
  const [left, right] = [affineOf(a, k), affineOf(b, k)]
  if (!left || !right) return filledShare(a, k) ?? filledShare(b, k) ?? UNKNOWN_PROBABILITY
  const coefficients = new Map(left.coefficients)
  for (const [name, n] of right.coefficients) coefficients.set(name, (coefficients.get(name) ?? 0) - n)
  let bound = right.constant - left.constant + offset
  const digits: { stride: number; extent: number }[] = []
  for (const [name, n] of coefficients) {
    const { start, extent } = k.ranges.get(name)!
    if (n === 0) continue
    // A digit with a negative stride counts from its other end.
    bound -= n > 0 ? n * start : n * (start + extent - 1)
    digits.push({ stride: Math.abs(n), extent })
  }
  return shareBelow(digits, bound)
}

/** Share of the sums of digits below a bound: exact for mixed-radix numbers, otherwise as if uniform. */
function shareBelow(digits: { stride: number; extent: number }[], bound: number): number {
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

function probabilityEqual(a: Expr, b: Expr, k: KnownValues): number {
  const [left, right] = [affineOf(a, k), affineOf(b, k)]
  if (!left || !right) return UNKNOWN_PROBABILITY
  const names = [...left.coefficients.keys(), ...right.coefficients.keys()]
  if (names.length === 0) return left.constant === right.constant ? 1 : 0
  return 1 / Math.max(1, ...names.map((n) => k.ranges.get(n)!.extent))
}

/** A coordinate compared with its extent: the share that is not padding; `undefined` without a load. */
function filledShare(e: Expr, k: KnownValues): number | undefined {
  let share: number | undefined
  someExpr(e, (x) => {
    if (x.kind === 'load') share ??= k.filled.get(x.buffer)
    return share !== undefined
  })
  return share
}

// Number of elements of a buffer.

/** Number of elements of a buffer, or of words of a packed one; 0 if unknown. */
export function elementsOf(b: Buffer, s: Pick<KnownValues, 'params'>): number {
  const known: KnownValues = { params: s.params, ranges: new Map(), lengths: new Map(), filled: new Map() }
  const n = b.shape.reduce((product, e) => product * expectedValue(e, known), 1)
  return Number.isNaN(n) ? 0 : b.packed === undefined ? n : wordsFor(n, b.packed)
}
