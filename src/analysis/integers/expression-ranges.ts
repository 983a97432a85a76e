/**
 * Range analysis of expressions (abstract interpretation over intervals): the range of an expression of a launch, over
 * the sizes of a plan. Names have the ranges of their values, index arrays have the ranges of their possible contents,
 * and surrounding conditions narrow ranges.
 */

import type { Param } from '../../ir/coordinates/stage1.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { computeType, INT_RANGE, isFloat, isWord, scalarType } from '../../ir/values/dtype.ts'
import { HIGHEST, LOWEST } from './interval.ts'
import { atLeast, constantEnd, type End, end, namedEnd, ZERO } from './symbolic-ends.ts'
import {
  ANY,
  isWithin,
  NATURAL,
  type SymbolicInterval,
  symbolic,
  symbolicIntervalOf,
  wholeOf,
} from './symbolic-interval.ts'

/** An expression that may exceed the type `index`, with the ends by which it may. */
export interface Over {
  /** The expression over parameters, loops and index arrays, without names of `let`s. */
  readonly expr: Expr
  readonly lo?: End | undefined
  readonly hi?: End | undefined
  /** The expression has 32 bits for any width of the type `index`. */
  readonly isWord?: true
}

/** Bounds of an expression that conditions imply. */
interface Bounds {
  readonly lo?: End | undefined
  readonly hi?: End | undefined
}

/** The facts in a body: bounds of expressions, from the conditions around it. */
export interface Scope {
  readonly bounds: ReadonlyMap<string, Bounds>
  readonly memo: Map<Expr, Ranged>
  readonly seen: Set<string>
  /** Number of conditions of enclosing selects that narrow ranges. */
  readonly depth: number
}

/** Maximum depth of a scope: a shared expression is computed again under each combination of conditions around it. */
const MAX_DEPTH = 4

export const scopeOf = (bounds: Scope['bounds'] = new Map(), depth = 0): Scope => ({
  bounds,
  memo: new Map(),
  seen: new Set(),
  depth,
})

/** A range, and the parts of the expression that must be checked, in order. */
export type Ranged = SymbolicInterval & { readonly overs: readonly Over[] }

const oversOf = (operands: readonly Ranged[]): readonly Over[] => {
  const own = operands.filter((x) => x.overs.length > 0)
  return own.length < 2 ? (own[0]?.overs ?? NONE) : [...new Set(own.flatMap((x) => x.overs))]
}
const NONE: readonly Over[] = []

const MOST = constantEnd(HIGHEST)

/** Returns the conditions under which 32 bits do not hold the value of a range. */
export function overOf(expr: Expr, range: SymbolicInterval): Over | undefined {
  const lo = range.knownLo && range.lo.lo < LOWEST ? range.lo : undefined
  const hi = range.knownHi && range.hi.hi > HIGHEST ? range.hi : undefined
  return lo || hi ? { expr, lo, hi } : undefined
}

export function rangesIn(params: readonly Param[], all: readonly Buffer[]) {
  const lets = new Map<string, Expr>()
  const loops = new Map<string, SymbolicInterval>()
  /** Registers that hold positions, with their upper bounds (exclusive); undefined if unknown. */
  const places = new Map<string, Expr | undefined>()
  const paramRanges = new Map(
    params.flatMap(({ name, kind, dtype }): [string, SymbolicInterval][] => {
      const value = namedEnd(name, kind === 'size' ? 0 : LOWEST, HIGHEST)
      return kind === 'size' || dtype === 'i32' ? [[name, symbolic(value, value)]] : []
    }),
  )
  const buffers = new Map(all.map((b) => [b.name, b]))
  /** Adds a `let`, whose range is computed where it is used. */
  const name = (scope: Scope, name: string, value: Expr): void => {
    define(scope, name, lets, value)
  }
  /** Adds a loop, or an axis of threads, from 0 on. It has an iteration. */
  const iterate = (scope: Scope, name: string, extent: SymbolicInterval): void => {
    const last = end('add', extent.hi, constantEnd(-1))
    define(scope, name, loops, symbolic(ZERO, atLeast(last, 0), true, extent.knownHi))
  }
  /** Adds a register of positions below `end`, if that is known. */
  const hold = (scope: Scope, register: string, below_: Expr | undefined): void => {
    define(scope, register, places, below_)
  }
  /** Adds a name. Caches are cleared if it is used again, because copies of a body may have names in common. */
  const define = <T>(scope: Scope, name: string, names: Map<string, T>, value: T): void => {
    if (names.has(name)) {
      scope.memo.clear()
      scope.seen.clear()
    }
    names.set(name, value)
  }
  const of = (e: Expr, scope: Scope): Ranged => {
    let known = scope.memo.get(e)
    if (!known) {
      known = bounded(e, compute(e, scope), scope)
      scope.memo.set(e, known)
    }
    return known
  }
  const compute = (e: Expr, scope: Scope): Ranged => {
    if (isFloat(e.dtype)) return { ...wholeOf(e.dtype), overs: NONE }
    switch (e.kind) {
      case 'var': {
        const value = lets.get(e.name)
        if (value) return of(value, scope)
        return { ...(loops.get(e.name) ?? paramRanges.get(e.name) ?? wholeOf(e.dtype)), overs: NONE }
      }
      case 'builtin':
        return { ...(loops.get(e.axis) ?? NATURAL), overs: NONE }
      case 'load':
        return loaded(e, scope)
      case 'binary': {
        const length = segmentOf(e, scope)
        if (length) return length
      }
    }
    const operands =
      e.kind === 'select' && scope.depth < MAX_DEPTH
        ? [of(e.cond, scope), of(e.then, where(e.cond, scope, scope.depth + 1)), of(e.else, scope)]
        : children(e).map((x) => of(x, scope))
    const overs = [...oversOf(operands), ...overWords(e, operands)]
    const exact = symbolicIntervalOf(e, operands, (x) => defined(x))
    if (e.dtype !== 'index' || e.kind === 'cast' || e.kind === 'call')
      return { ...inRegister(e, exact), overs }
    const over = overOf(e, exact)
    const isExact = (exact.knownLo || exact.lo.lo >= LOWEST) && (exact.knownHi || exact.hi.hi <= HIGHEST)
    return { ...(isExact ? exact : ANY), overs: over ? [...overs, over] : overs }
  }
  const loaded = (e: Load, scope: Scope): Ranged => {
    const overs = oversOf(children(e).map((x) => of(x, scope)))
    const buffer = buffers.get(e.buffer)
    let range = wholeOf(e.dtype)
    if (places.has(e.buffer)) range = place(places.get(e.buffer), scope)
    // No code computes this end. Elements have 32 bits, whatever it is.
    else if (buffer?.below) range = below(of(buffer.below, scope))
    // The number of positions bounds an offset, but a sum with this bound does not prove an overflow.
    else if (buffer?.positions) range = symbolic(ZERO, upTo(of(buffer.positions, scope)).hi, true, false)
    return { ...range, overs }
  }
  const place = (below_: Expr | undefined, scope: Scope): SymbolicInterval =>
    below_ ? below(of(below_, scope)) : NATURAL
  /**
   * Returns the range of a difference: `offsets[p + 1] - offsets[p]`, the length of a segment, which is at most that of
   * all; or `x - offsets[p]` for the segment p of `x`, the position in the segment. Returns undefined for other
   * differences.
   */
  const segmentOf = (e: Extract<Expr, { kind: 'binary' }>, scope: Scope): Ranged | undefined => {
    if (e.op !== 'sub') return undefined
    const [a, b] = [defined(e.a), defined(e.b)]
    if (b.kind !== 'load') return undefined
    const positions = buffers.get(b.buffer)?.positions
    const alike = a.kind === 'load' && a.buffer === b.buffer
    if (!positions || !(alike || isFound(b.index[0]!))) return undefined
    const overs = oversOf([of(a, scope), of(b, scope)])
    return { ...upTo(of(alike ? positions : a, scope)), overs }
  }
  /** Returns whether the index is the segment that a search found: the one before the first that begins later. */
  const isFound = (index: Expr): boolean => {
    const e = defined(index)
    if (e.kind !== 'binary' || e.op !== 'sub' || e.b.kind !== 'const') return false
    const found = defined(e.a)
    return found.kind === 'search' || (found.kind === 'load' && places.has(found.buffer))
  }
  const defined = (e: Expr): Expr => {
    let out = e
    while (out.kind === 'var') {
      const value = lets.get(out.name)
      if (!value) break
      out = value
    }
    return out
  }
  const bounded = (e: Expr, range: Ranged, { bounds }: Scope): Ranged => {
    const said = bounds.size > 0 && e.kind !== 'const' ? bounds.get(keyOf(e)) : undefined
    if (!said) return range
    const lo = said.lo ? (range.knownLo ? end('max', range.lo, said.lo) : said.lo) : range.lo
    const hi = said.hi ? (range.knownHi ? end('min', range.hi, said.hi) : said.hi) : range.hi
    // Code with contradictory facts is never reached.
    return {
      ...symbolic(lo, end('max', lo, hi), range.knownLo || !!said.lo, range.knownHi || !!said.hi),
      overs: range.overs,
    }
  }
  const where = (cond: Expr, scope: Scope, depth = scope.depth): Scope => {
    const bounds = new Map(scope.bounds)
    let narrower = false
    const say = (e: Expr, { lo, hi }: Bounds): void => {
      const range = of(e, scope)
      const implied = (!lo || lo.hi <= range.lo.lo) && (!hi || hi.lo >= range.hi.hi)
      if (implied) return
      narrower = true
      const names: Expr[] = [e]
      for (let x = e; x.kind === 'var'; ) {
        const value = lets.get(x.name)
        if (!value) break
        names.push(value)
        x = value
      }
      for (const x of names) {
        if (x.kind === 'const') continue
        const said = bounds.get(keyOf(x)) ?? {}
        bounds.set(keyOf(x), { lo: both('max', said.lo, lo), hi: both('min', said.hi, hi) })
      }
      // A bound of x + c bounds x as well.
      const sum = names.at(-1)!
      if (sum.kind === 'binary' && sum.op === 'add' && sum.b.kind === 'const') {
        const by = constantEnd(-sum.b.value)
        say(sum.a, { lo: lo && end('add', lo, by), hi: hi && end('add', hi, by) })
      }
    }
    const read = (e: Expr): void => {
      const c = defined(e)
      if (c.kind !== 'binary') return
      if (c.op === 'and') {
        read(c.a)
        read(c.b)
        return
      }
      if (!isWord(c.a.dtype) || !isWord(c.b.dtype)) return
      // a > b is b < a.
      const turned = c.op === 'gt' || c.op === 'ge'
      const [low, high] = turned ? [c.b, c.a] : [c.a, c.b]
      const [x, y] = [of(low, scope), of(high, scope)]
      const [least, most] = [x.knownLo ? x.lo : undefined, y.knownHi ? y.hi : undefined]
      if (c.op === 'eq') {
        say(low, { lo: y.knownLo ? y.lo : undefined, hi: most })
        say(high, { lo: least, hi: x.knownHi ? x.hi : undefined })
      } else if (turned || c.op === 'lt' || c.op === 'le') {
        const gap = constantEnd(c.op === 'lt' || c.op === 'gt' ? 1 : 0)
        say(low, { hi: most && end('sub', most, gap) })
        say(high, { lo: least && end('add', least, gap) })
      }
    }
    read(cond)
    return narrower ? scopeOf(bounds, depth) : scope
  }
  return { lets, name, iterate, hold, of, where }
}

const both = (op: 'min' | 'max', a: End | undefined, b: End | undefined): End | undefined =>
  a && b ? end(op, a, b) : (a ?? b)

/** Returns the operands of a bit operation that must have 32 bits. */
function overWords(e: Expr, operands: readonly Ranged[]): readonly Over[] {
  if (e.kind !== 'call') return NONE
  return operands.flatMap((x, n): readonly Over[] => {
    const over = e.args[n]!.dtype === 'index' ? overOf(e.args[n]!, x) : undefined
    return over ? [{ ...over, isWord: true }] : []
  })
}

/** Returns the range of a node in a register; that of its type if the value may wrap. */
function inRegister(e: Expr, exact: SymbolicInterval): SymbolicInterval {
  const dtype = e.kind === 'cast' ? scalarType(e.dtype) : computeType(e.dtype)
  if (isFloat(dtype) || dtype === 'bool') return exact
  const [lo, hi] = INT_RANGE[dtype as 'i32']
  return isWithin(exact, lo, hi) ? exact : wholeOf(dtype)
}

/** Returns the range of an index with this end (exclusive), which has 32 bits. */
const below = ({ hi, knownHi }: SymbolicInterval): SymbolicInterval =>
  symbolic(ZERO, end('min', end('max', ZERO, end('add', hi, constantEnd(-1))), MOST), true, knownHi)

const upTo = ({ hi, knownHi }: SymbolicInterval): SymbolicInterval =>
  symbolic(ZERO, end('max', ZERO, hi), true, knownHi)
