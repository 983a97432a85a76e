/**
 * Forward sparsity propagation: tensors that have one value wherever a mask has its fill value, by a fixpoint over the
 * statements that write them; without a mask, tensors that have one value everywhere. An unknown value is `pending`,
 * becomes a number at most once, and then `live`, so the fixpoint terminates. The remaining values hold in every state
 * of the kernel.
 */
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Expr, isZero, type Load } from '../../ir/expressions/expr.ts'
import { children, someExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import type { MathFn } from '../../ir/values/math.ts'
import { absorb, givenBy, type KnownAt } from './fill-folding.ts'
import {
  constantOf,
  isAllDense,
  isCovered,
  maskedAt,
  sameIndex,
  startOf,
  untilSettled,
  type Write,
  waysInto,
  writesOf,
} from './writes.ts'

interface State {
  readonly buffer: Buffer1
  /** The dimension of the tensor that corresponds to each dimension of the mask. */
  readonly by: readonly number[]
  readonly start: number | null
  now: 'pending' | 'live' | number
}

/** The value of a tensor where the mask has its fill value. */
interface ValueWhere {
  readonly tensor: string
  readonly by: readonly number[]
  readonly value: number
}

export interface KnownValues {
  readonly all: readonly ValueWhere[]
  readonly statesAt: (at: readonly Expr[], w: Write) => KnownAt
  readonly keeps: (l: Load, at: readonly Expr[], value: Expr) => boolean
  readonly valueAt: (l: Load, at: readonly Expr[], w: Write) => State['now']
}

/**
 * Propagates known values through a kernel.
 *
 * @param mask null for the values of all elements
 * @param kept only tensors that keep their initial value, so that the result holds even if writing statements are removed
 */
export function knownValues(kernel: Kernel1, mask: Buffer1 | null, kept: boolean): KnownValues {
  /** Returns the known values of a statement's accesses where the mask has its fill value at `at`. */
  const statesAt =
    (at: readonly Expr[], w: Write): KnownAt =>
    (l) => {
      const value = valueAt(l, at, w)
      return typeof value === 'number' ? constantOf(value, l) : undefined
    }
  /** Returns whether an element has this value during the whole run, where the mask has its fill value at `at`. */
  const keeps = (l: Load, at: readonly Expr[], value: Expr): boolean => {
    const s = stateAt(l, at)
    return s !== undefined && value.kind === 'const' && s.now === value.value && s.start === s.now
  }
  const stateAt = (l: Load, at: readonly Expr[]): State | undefined => {
    const matching = (stateOf.get(l.buffer) ?? []).filter((s) => sameIndex(maskedAt(l, s.by), at))
    return matching.find((s) => s.now !== 'live') ?? matching[0]
  }
  const valueAt = (l: Load, at: readonly Expr[], w: Write): State['now'] => {
    if (l.buffer === mask?.name && sameIndex(l.index, at)) return mask.fill
    const s = stateAt(l, at)
    if (s && s.now !== 'live')
      return s.now === s.buffer.fill || s.now === 'pending' || w.inside.has(keyOf(l)) ? s.now : 'live'
    return everywhere ? everywhere.valueAt(l, [], w) : 'live'
  }
  const joined = (s: State, writes: readonly Write[]): State['now'] => {
    let joined = s.now
    for (const w of writes)
      for (const [k, t] of w.targets.entries()) {
        if (t.buffer !== s.buffer.name || joined === 'live') continue
        const at = maskedAt(t, s.by)
        const known = statesAt(at, w)
        const given = givenBy(w, known)
        if (given.every((g) => g.isIdentity)) continue
        const { value } = given[k]!
        const waits = (e: Expr): boolean =>
          someExpr(e, (x) => x.kind === 'load' && valueAt(x, at, w) === 'pending')
        if (given.some((g) => g.value.kind !== 'const' && waits(g.value))) continue
        if (w.stmt.kind === 'reduce' || value.kind !== 'const' || Number.isNaN(value.value)) joined = 'live'
        else if (joined === 'pending') joined = value.value + 0
        else if (joined !== value.value) joined = 'live'
      }
    return joined
  }
  const stateOf = new Map<string, readonly State[]>()
  const everywhere = mask ? knownValues(kernel, null, kept) : null
  const writes = writesOf(kernel)
  for (const buffer of kernel.buffers) {
    const start = startOf(buffer, writes)
    if (buffer === mask || start === null || Number.isNaN(start)) continue
    const covered = !kept && isCovered(kernel, buffer)
    const ways = mask ? waysInto(kernel, mask, buffer) : [[]]
    const absent = start !== buffer.fill && !isAllDense(kernel, buffer)
    const now = absent ? 'live' : covered ? 'pending' : start
    stateOf.set(
      buffer.name,
      ways.map((by) => ({ buffer, by, start, now })),
    )
  }
  untilSettled(stateOf, (s) => {
    const before = s.now
    if (before !== 'live') s.now = joined(s, writes)
    return s.now !== before
  })
  return {
    get all(): readonly ValueWhere[] {
      return [...stateOf].flatMap(([tensor, states]) =>
        states.flatMap(({ by, now }) => (typeof now === 'number' ? [{ tensor, by, value: now }] : [])),
      )
    },
    statesAt,
    keeps,
    valueAt,
  }
}

// Detection of results that become infinite or NaN because one operand has another finite value.

/** Functions whose results are finite for finite operands, and not large for operands that are not. */
const FINITE: ReadonlySet<MathFn> = new Set([
  'abs',
  'sin',
  'cos',
  'tanh',
  'sigmoid',
  'floor',
  'ceil',
  'round',
  'erf',
  'sign',
])

/**
 * Returns whether the value may become infinite or NaN with `now` in place of some accesses, which were finite. Sums
 * and products of finite numbers stay finite, as everywhere where zeros are skipped. A quotient by such an access, or a
 * function of it, may become infinite, and so may 0 times a factor that `mayBeInfinite`.
 */
export function madeInfinite(e: Expr, now: KnownAt, mayBeInfinite: (factor: Expr) => boolean): boolean {
  const isOf = (x: Expr): boolean => x.kind === 'load' && now(x) !== undefined
  const go = (x: Expr): boolean => {
    if (!someExpr(x, isOf)) return false
    const factors: Expr[] = []
    const there = absorb(x, now, factors)
    if (factors.some(mayBeInfinite)) return true
    if (there.kind === 'const') return !Number.isFinite(there.value)
    if (isOf(x)) return true
    if (x.kind === 'select' && someExpr(x.cond, isOf))
      return [x.then, x.else].some((y) => someExpr(y, isRisky) || go(y))
    // If only the dividend changes, a quotient is infinite for the divisor 0, as before; but 0 / 0 is NaN.
    const isOver = x.kind === 'binary' && !someExpr(x.b, isOf) && !isZero(absorb(x.a, now, []))
    if (isRisky(x) && !isOver) return true
    return children(x).some(go)
  }
  return go(e)
}

const isRisky = (x: Expr): boolean =>
  isFloat(x.dtype) &&
  (x.kind === 'call' ? !FINITE.has(x.fn) : x.kind === 'binary' && (x.op === 'div' || x.op === 'mod'))
