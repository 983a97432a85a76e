/** Bounds and signs of integer expressions, by what is known of names and arrays where they stand. */
import { boundVarsOf } from '../../ir/bindings.ts'
import { allocations } from '../../ir/definitions.ts'
import { type Expr, int, sub, type ThreadAxis, variable } from '../../ir/expr.ts'
import { children, perExpr, someExpr, substitute, truncated } from '../../ir/expr-tree.ts'
import type { Buffer } from '../../ir/loops.ts'
import { MATH } from '../../ir/math.ts'
import type { Param } from '../../ir/stage1.ts'
import { type Body, walkStmts } from '../../ir/tree.ts'
import { isWritten, type Values, valuesIn } from '../../ir/wrapping-values.ts'
import {
  ANY,
  beyond,
  binaryInterval,
  type Interval,
  inRegister,
  interval,
  intervalOf,
  isNonNegative,
  NATURAL,
  type NamedRange,
  narrowed,
} from './interval.ts'
import { type Extents, type Linear, linear } from './linear.ts'

/** What is known of a register. */
export interface Register {
  readonly range: Interval
  /** Whether it depends on data: no check of sizes sees where it leaves its type. */
  readonly ofData: boolean
  /** Whether it may have wrapped: its exact value is another one then. */
  readonly wraps: boolean
}

/** What a caller knows of a node beside its operands. */
export interface KnownOfRegister extends Partial<Pick<Register, 'range' | 'ofData'>> {
  /** Least and greatest value that what the register holds has where it is asked for. */
  readonly within?: readonly [number, number]
}

export type KnownRegister = (e: Expr) => KnownOfRegister | undefined

/**
 * The one rule of what expressions of kernels may be, each node once. Sizes, coordinates and sums of them fit, or are refused
 * before anything runs (`plan-ranges.ts`). Casts, other types than i32, and what is made of data wrap.
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
    const { ofData = e.kind === 'load' || operands.some((x) => x.ofData) } = given ?? {}
    const unseen = ofData || e.kind === 'cast' || e.dtype !== 'i32'
    const held = unseen ? inRegister(e, exact) : exact
    const wraps = held !== exact
    const range = given?.within ? narrowed(held, ...given.within) : held
    // Of what wrapped, or was taken bit by bit, no check knows more than of data; but every check knows how many bits a shift leaves.
    return { range, ofData: leavesBits(e) ? false : ofData || wraps || isOfBits(e), wraps }
  })

/** Whether this is a word without some of its upper bits, whatever it holds: less than a power of two. */
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

/** Bounds of expressions over loops. */
export const rangesOver = (loops: Extents): ((e: Expr) => Interval) => rangesBy(overLoops(loops))

/** What registers hold of expressions over loops, some of them of values, which wrap. */
export function registersOver(loops: Extents, values: Values): (e: Expr) => Register {
  const known = overLoops(loops)
  return registersBy((e) => (isWritten(values, e) ? { ofData: true } : known(e)))
}

/** The ranges alone. */
export function rangesBy(known: KnownRegister): (e: Expr) => Interval {
  const registers = registersBy(known)
  return (e) => registers(e).range
}

/** Bounds of a sum, from those of its terms. */
export const rangeOfSum = ({ terms, constant }: Linear, range: (e: Expr) => Interval): Interval =>
  [...terms.values()].reduce(
    (sum, { term, coefficient: c }) =>
      binaryInterval('add', sum, binaryInterval('mul', range(term), interval(c, c))),
    interval(constant, constant),
  )

/** Bounds of what is read of arrays, by the bounds of the operands, where those who have the arrays know. */
export type ReadRange = (e: Expr, operands: readonly Interval[]) => Interval | undefined

/** A word is one that there may be here: formats compute nothing of it that wraps, as kernels do of data. */
function exactly(e: Expr, operands: readonly Interval[], named: NamedRange, read?: ReadRange): Interval {
  const own = read?.(e, operands) ?? intervalOf(e, operands, named)
  return isOfBits(e) ? interval(own.lo, own.hi) : own
}

const isOfBits = (e: Expr): boolean => e.kind === 'call' && MATH[e.fn].type === 'bits'

/** Bounds in exact integers, as hosts compute maps, where they are known. Divisors are taken for what they may be: `x / 0` is 0. */
export function boundsOf(e: Expr, named: NamedRange, read?: ReadRange): Interval | undefined {
  const found = perExpr<Interval>((x, of) => exactly(x, children(x).map(of), named, read))(e)
  return found.known ? found : undefined
}

/** The first part (of those not known to be `fitting`) of an i32 expression that may leave 32 bits, where its bounds are known. */
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
    if (!found && x.dtype === 'i32' && beyond(own)) found = { ...own, expr: x }
    return x.dtype === 'i32' && !own.fits ? ANY : own
  })(e)
  return found
}

/** Names of names, as far as places of offsets are looked at. */
const DEPTH = 3

/** How many there are of each index of a launch. */
export type HardwareExtents = ReadonlyMap<ThreadAxis, Expr>

/**
 * What registers of a body hold: sizes, positions, index arrays, and what is made of them, are not negative unless they wrap,
 * as values do. A `let` may be anything.
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
      // A name of two values says nothing.
      lets.set(s.name, (lets.get(s.name) ?? s.value) === s.value ? s.value : variable(s.name))
      if (someExpr(s.value, isData)) data.add(s.name)
    })
  }
  const values = valuesIn(body)
  const place = { range: NATURAL, ofData: false }
  /** `indptr[p + 1] - indptr[p]`. Of other positions, and of lists and tables, the first may be less than the second. */
  const isLength = ({ op, a, b }: Extract<Expr, { kind: 'binary' }>): boolean => {
    if (op !== 'sub' || a.kind !== 'load' || b.kind !== 'load' || a.buffer !== b.buffer) return false
    return offsets.has(a.buffer) && isNatural(sub(a.index[0]!, b.index[0]!))
  }
  const isNatural = (difference: Expr): boolean => {
    let gap = difference
    for (let depth = 0; depth < DEPTH; depth++) gap = substitute(gap, lets)
    return isNonNegative(rangeOfSum(linear(truncated(gap)), (x) => registers(x).range))
  }
  // Of what runs to different ends under one name nothing is known.
  const extents = new Map<string, Expr | undefined>(launch)
  walkStmts(body, (s) => {
    if (s.kind === 'for') extents.set(s.var, extents.has(s.var) ? undefined : s.extent)
  })
  /** `last - v` of a loop, or of the indices of a launch, counted down. */
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
      case 'binary': {
        if (isWritten(values, e)) return { ofData: true }
        return isLength(e) || isCountedDown(e) ? place : undefined
      }
      case 'unary':
        return isWritten(values, e) ? { ofData: true } : undefined
      default:
        return undefined
    }
  })
  return registers
}

/** Which integer expressions of a body cannot be negative. */
export function naturals(...of: Parameters<typeof registersOf>): (e: Expr) => boolean {
  const registers = registersOf(...of)
  return (e) => isNonNegative(registers(e).range)
}
