/** Ranges and signs of integer expressions, from facts about names and arrays in their scope. */

import type { Param } from '../../ir/coordinates/stage1.ts'
import { type Expr, int, sub, type ThreadAxis, variable } from '../../ir/expressions/expr.ts'
import { children, perExpr, someExpr, substitute, truncateDivisions } from '../../ir/expressions/expr-tree.ts'
import { isWrapping } from '../../ir/expressions/wrapping-values.ts'
import { boundVarsOf } from '../../ir/statements/bindings.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { type Body, walkStmts } from '../../ir/statements/tree.ts'
import { isWord } from '../../ir/values/dtype.ts'
import { MATH } from '../../ir/values/math.ts'
import type { Interval, NamedRange } from './interval.ts'
import {
  ANY,
  beyond,
  binaryInterval,
  inRegister,
  interval,
  intervalOf,
  isNonNegative,
  NATURAL,
  narrowed,
} from './interval.ts'
import { type Extents, type Linear, linear } from './linear.ts'

export interface Register {
  readonly range: Interval
  /** True if the value depends on data, so that checks of sizes do not show whether it exceeds its type. */
  readonly ofData: boolean
  /** True if the value may have wrapped, so that it may differ from the exact value. */
  readonly wraps: boolean
}

/** Properties of a node that a caller knows in addition to its operands. */
interface KnownOfRegister extends Partial<Pick<Register, 'range' | 'ofData'>> {
  /** The least and greatest value of the register in the scope of the query. */
  readonly within?: readonly [number, number]
}

export type KnownRegister = (e: Expr) => KnownOfRegister | undefined

/**
 * Returns a function to the properties of expressions, which visits each node once. Sizes, coordinates and sums of
 * these have the type `index`; they fit, or are rejected before a run (`range-checks.ts`). Casts, other types, and
 * arithmetic on data wrap.
 */
export const registersBy = (known: KnownRegister): ((e: Expr) => Register) =>
  perExpr<Register>((e, of) => {
    const operands = children(e).map(of)
    const given = known(e)
    const exact =
      given?.range ??
      intervalOf(
        e,
        operands.map((x) => x.range),
      )
    const { ofData = e.kind === 'load' || isWrapping(e) || operands.some((x) => x.ofData) } = given ?? {}
    const unseen = ofData || e.kind === 'cast' || e.dtype !== 'index'
    const held = unseen ? inRegister(e, exact) : exact
    const wraps = held !== exact
    const range = given?.within ? narrowed(held, ...given.within) : held
    // After wrap-around or bit operations, checks of sizes have no more information than for data; but the remaining
    // bits of a shift are known.
    return { range, ofData: leavesBits(e) ? false : ofData || wraps || isOfBits(e), wraps }
  })

/**
 * Returns whether this is a word without some of its upper bits, so that it is less than a power of two for any data.
 */
const leavesBits = (e: Expr): boolean =>
  e.kind === 'call' &&
  e.fn === 'shift_right' &&
  e.args[1]!.kind === 'const' &&
  e.args[1].value > 0 &&
  e.args[1].value < 32

const overLoops =
  (loops: Extents): KnownRegister =>
  (e) => {
    const extent = e.kind === 'var' ? loops.get(e.name)?.extent : undefined
    if (!extent) return undefined
    return { range: extent.kind === 'const' ? interval(0, Math.max(0, extent.value - 1)) : NATURAL }
  }

export const rangesOver = (loops: Extents): ((e: Expr) => Interval) => rangesBy(overLoops(loops))

export function rangesBy(known: KnownRegister): (e: Expr) => Interval {
  const registers = registersBy(known)
  return (e) => registers(e).range
}

export const rangeOfSum = ({ terms, constant }: Linear, range: (e: Expr) => Interval): Interval =>
  [...terms.values()].reduce(
    (sum, { term, coefficient: c }) =>
      binaryInterval('add', sum, binaryInterval('mul', range(term), interval(c, c))),
    interval(constant, constant),
  )

/**
 * Returns the range of a read of an array, given the ranges of its operands, if the caller has the array; undefined
 * otherwise.
 */
export type ReadRange = (e: Expr, operands: readonly Interval[]) => Interval | undefined

/**
 * Returns a range in exact integers. The range of a bit operation is known here, because formats, unlike kernels,
 * compute nothing from it that wraps.
 */
function exactly(e: Expr, operands: readonly Interval[], named: NamedRange, read?: ReadRange): Interval {
  const own = read?.(e, operands) ?? intervalOf(e, operands, named)
  return isOfBits(e) ? interval(own.lo, own.hi) : own
}

const isOfBits = (e: Expr): boolean => e.kind === 'call' && MATH[e.fn].type === 'bits'

/**
 * Returns bounds in exact integers, as hosts compute maps; undefined if they are unknown. Divisors have their full
 * range, with `x / 0` = 0.
 */
export function boundsOf(e: Expr, named: NamedRange, read?: ReadRange): Interval | undefined {
  const found = perExpr<Interval>((x, of) => exactly(x, children(x).map(of), named, read))(e)
  return found.known ? found : undefined
}

/**
 * Returns the first part of an i32 expression that may exceed 32 bits, if its bounds are known, except parts that are
 * `fitting`; undefined if there is no such part.
 */
export function overflowIn(
  e: Expr,
  named: NamedRange,
  read?: ReadRange,
  fitting: (x: Expr) => boolean = () => false,
): (Interval & { readonly expr: Expr }) | undefined {
  let found: (Interval & { readonly expr: Expr }) | undefined
  perExpr<Interval>((x, of) => {
    if (fitting(x)) return ANY
    const own = exactly(x, children(x).map(of), named, read)
    if (!found && isWord(x.dtype) && beyond(own)) found = { ...own, expr: x }
    return isWord(x.dtype) && !own.fits ? ANY : own
  })(e)
  return found
}

/** The number of nested names that are substituted in the indices of offsets. */
const DEPTH = 3

/** The number of values of each hardware index of a launch. */
export type HardwareExtents = ReadonlyMap<ThreadAxis, Expr>

/**
 * Returns a function to the properties of expressions in a body. Sizes, positions, index arrays, and expressions over
 * these are not negative, unless they wrap like values. A `let` may have any value.
 */
export function registersOf(
  body: Body,
  params: readonly Param[],
  buffers: readonly Buffer[],
  launch: HardwareExtents = new Map(),
): (e: Expr) => Register {
  const natural = new Set(params.filter((p) => p.kind === 'size').map((p) => p.name))
  for (const v of boundVarsOf(body)) natural.add(v)
  const held = allocations(body).values()
  const index = new Set([...buffers, ...held].filter((b) => b.role === 'index').map((b) => b.name))
  const offsets = new Set([...buffers, ...held].flatMap((b) => (b.positions ? [b.name] : [])))
  const lets = new Map<string, Expr>()
  const data = new Set(params.flatMap((p) => (p.kind === 'size' ? [] : [p.name])))
  const isData = (e: Expr): boolean =>
    e.kind === 'load' ? !index.has(e.buffer) : e.kind === 'var' && data.has(e.name)
  for (let before = -1; before !== data.size; ) {
    before = data.size
    walkStmts(body, (s) => {
      if (s.kind !== 'let') return
      natural.delete(s.name)
      // A name with two values is unknown.
      lets.set(s.name, (lets.get(s.name) ?? s.value) === s.value ? s.value : variable(s.name))
      if (someExpr(s.value, isData)) data.add(s.name)
    })
  }
  const place = { range: NATURAL, ofData: false }
  /**
   * Returns whether this is `indptr[p + 1] - indptr[p]`. For other positions, lists and tables, the difference may be
   * negative.
   */
  const isLength = ({ op, a, b }: Extract<Expr, { kind: 'binary' }>): boolean => {
    if (op !== 'sub' || a.kind !== 'load' || b.kind !== 'load' || a.buffer !== b.buffer) return false
    return offsets.has(a.buffer) && isNatural(sub(a.index[0]!, b.index[0]!))
  }
  const isNatural = (difference: Expr): boolean => {
    let gap = difference
    for (let depth = 0; depth < DEPTH; depth++) gap = substitute(gap, lets)
    return isNonNegative(rangeOfSum(linear(truncateDivisions(gap)), (x) => registers(x).range))
  }
  // A name with several extents is unknown.
  const extents = new Map<string, Expr | undefined>(launch)
  walkStmts(body, (s) => {
    if (s.kind === 'for') extents.set(s.var, extents.has(s.var) ? undefined : s.extent)
  })
  /** Returns whether this is `last - v`: a loop, or a hardware index of a launch, counted down. */
  const isCountedDown = ({ op, a, b }: Extract<Expr, { kind: 'binary' }>): boolean => {
    const name = b.kind === 'var' ? b.name : b.kind === 'builtin' ? b.axis : ''
    const extent = op === 'sub' ? extents.get(name) : undefined
    return extent !== undefined && isNatural(sub(a, sub(extent, int(1))))
  }
  const registers = registersBy((e) => {
    switch (e.kind) {
      case 'builtin':
        return place
      case 'var':
        return natural.has(e.name) ? place : { ofData: data.has(e.name) }
      case 'load':
        return index.has(e.buffer) ? place : undefined
      case 'binary':
        return !isWrapping(e) && (isLength(e) || isCountedDown(e)) ? place : undefined
      default:
        return undefined
    }
  })
  return registers
}

/** Returns a test whether an integer expression of a body cannot be negative. */
export function naturals(...of: Parameters<typeof registersOf>): (e: Expr) => boolean {
  const registers = registersOf(...of)
  return (e) => isNonNegative(registers(e).range)
}
