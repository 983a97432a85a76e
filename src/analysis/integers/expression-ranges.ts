/**
 * Range analysis of expressions (abstract interpretation over intervals): the range of an expression of a launch, for
 * given sizes, by exact interval arithmetic. Names have the ranges of their values, index arrays have the ranges of
 * their possible contents, and surrounding conditions narrow ranges.
 */

import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { isFloat, isWord } from '../../ir/values/dtype.ts'
import {
  ANY,
  beyond,
  HIGHEST,
  type Interval,
  inRegister,
  interval,
  intervalOf,
  LOWEST,
  NATURAL,
  narrowed,
  wholeOf,
} from './interval.ts'

/** The least and greatest value of each parameter; an absent parameter is unknown. */
export type Box = ReadonlyMap<string, readonly [number, number]>

/** An expression that exceeds 32 bits. */
export interface Over {
  /** The expression over parameters, loops and index arrays, without names of `let`s. */
  readonly expr: Expr
  readonly lo: number
  readonly hi: number
}

type Known = ReadonlyMap<string, readonly [number, number]>

/** The facts in a body: bounds of expressions, from the conditions around it. */
export interface Scope {
  readonly bounds: Known
  readonly memo: Map<Expr, Ranged>
  readonly seen: Set<string>
}

export const scopeOf = (bounds: Known): Scope => ({ bounds, memo: new Map(), seen: new Set() })

/** A range, and the part of the expression that exceeds 32 bits, if any. */
export type Ranged = Interval & { readonly over?: Over }

export const overOf = (operands: readonly Ranged[]): Over | undefined => operands.find((x) => x.over)?.over

export class Ranges {
  readonly lets = new Map<string, Expr>()
  readonly #box: Box
  /** True if conditions narrow the ranges of expressions that they mention. */
  readonly #refine: boolean
  readonly #buffers: ReadonlyMap<string, Buffer>
  readonly #loops = new Map<string, Interval>()
  /** Registers that hold positions, with their upper bounds (exclusive); undefined if unknown. */
  readonly #places = new Map<string, Expr | undefined>()

  /** The greatest value of the type `index`. */
  readonly #most: number

  constructor(buffers: readonly Buffer[], box: Box, refine: boolean, most: number = HIGHEST) {
    this.#most = most
    this.#box = box
    this.#refine = refine
    this.#buffers = new Map(buffers.map((b) => [b.name, b]))
  }

  /** Adds a `let`, whose range is computed where it is used. */
  name(scope: Scope, name: string, value: Expr): void {
    this.#define(scope, name, this.lets, value)
  }

  /** Adds a loop, or an axis of threads, from 0 on. */
  iterate(scope: Scope, name: string, extent: Interval): void {
    this.#define(scope, name, this.#loops, below(extent))
  }

  /** Adds a register of positions below `end`, if that is known. */
  hold(scope: Scope, register: string, end: Expr | undefined): void {
    this.#define(scope, register, this.#places, end)
  }

  /** Adds a name. Caches are cleared if it is used again, because copies of a body may have names in common. */
  #define<T>(scope: Scope, name: string, names: Map<string, T>, value: T): void {
    if (names.has(name)) {
      scope.memo.clear()
      scope.seen.clear()
    }
    names.set(name, value)
  }

  of(e: Expr, scope: Scope): Ranged {
    let known = scope.memo.get(e)
    if (!known) {
      known = this.#bounded(e, this.#compute(e, scope), scope)
      scope.memo.set(e, known)
    }
    return known
  }

  #compute(e: Expr, scope: Scope): Ranged {
    if (isFloat(e.dtype)) return wholeOf(e.dtype)
    switch (e.kind) {
      case 'var': {
        const value = this.lets.get(e.name)
        if (value) return this.of(value, scope)
        const given = this.#box.get(e.name)
        return this.#loops.get(e.name) ?? (given ? interval(given[0], given[1]) : wholeOf(e.dtype))
      }
      case 'builtin':
        return this.#loops.get(e.axis) ?? NATURAL
      case 'load':
        return this.#loaded(e, scope)
      case 'binary': {
        const length = this.#segmentOf(e, scope)
        if (length) return length
      }
    }
    const operands =
      e.kind === 'select'
        ? [this.of(e.cond, scope), this.of(e.then, this.where(e.cond, scope)), this.of(e.else, scope)]
        : children(e).map((x) => this.of(x, scope))
    const over = overOf(operands) ?? this.#overWord(e, operands)
    const exact = intervalOf(e, operands, undefined, (x) => this.#defined(x))
    const range = this.#held(e, exact)
    const wraps = range !== exact && (over || e.kind === 'cast' || e.dtype !== 'index' || !beyond(exact))
    if (range === exact || wraps) return over ? { ...range, over } : range
    return { ...ANY, over: { expr: e, lo: exact.lo, hi: exact.hi } }
  }

  /** Returns the range of a node in a register. */
  #held(e: Expr, exact: Interval): Interval {
    if (this.#most === HIGHEST || e.dtype !== 'index' || e.kind === 'call') return inRegister(e, exact)
    const isWithin = exact.lo >= -this.#most && exact.hi <= this.#most
    return isWithin ? exact : interval(-this.#most, this.#most, false)
  }

  /** Returns the operand of a bit operation, that exceeds 32 bits. */
  #overWord(e: Expr, operands: readonly Interval[]): Over | undefined {
    if (e.kind !== 'call' || this.#most === HIGHEST) return undefined
    const k = operands.findIndex((x, n) => e.args[n]!.dtype === 'index' && beyond(x))
    return k < 0 ? undefined : { expr: e.args[k]!, lo: operands[k]!.lo, hi: operands[k]!.hi }
  }

  #loaded(e: Load, scope: Scope): Ranged {
    const over = overOf(children(e).map((x) => this.of(x, scope)))
    const buffer = this.#buffers.get(e.buffer)
    let range = wholeOf(e.dtype)
    if (this.#places.has(e.buffer)) range = this.#place(this.#places.get(e.buffer), scope)
    else if (buffer?.below) {
      const end = this.of(buffer.below, scope)
      // No code computes this end. Elements have 32 bits, whatever it is.
      range = end.over ? interval(0, HIGHEST, true, true) : below(end)
    }
    // The number of positions bounds an offset, but a sum with this bound does not prove an overflow.
    else if (buffer?.positions) range = interval(0, upTo(this.of(buffer.positions, scope)).hi, true, false)
    return over ? { ...range, over } : range
  }

  #place(below_: Expr | undefined, scope: Scope): Interval {
    return below_ ? below(this.of(below_, scope)) : NATURAL
  }

  /**
   * Returns the range of a difference: `offsets[p + 1] - offsets[p]`, the length of a segment, which is at most that of
   * all; or `x - offsets[p]` for the segment p of `x`, the position in the segment. Returns undefined for other
   * differences.
   */
  #segmentOf(e: Extract<Expr, { kind: 'binary' }>, scope: Scope): Ranged | undefined {
    if (e.op !== 'sub') return undefined
    const [a, b] = [this.#defined(e.a), this.#defined(e.b)]
    if (b.kind !== 'load') return undefined
    const positions = this.#buffers.get(b.buffer)?.positions
    const alike = a.kind === 'load' && a.buffer === b.buffer
    if (!positions || !(alike || this.#isFound(b.index[0]!))) return undefined
    const over = overOf([this.of(a, scope), this.of(b, scope)])
    const most = upTo(this.of(alike ? positions : a, scope))
    return over ? { ...most, over } : most
  }

  /** Returns whether the index is the segment that a search found: the one before the first that begins later. */
  #isFound(index: Expr): boolean {
    const e = this.#defined(index)
    if (e.kind !== 'binary' || e.op !== 'sub' || e.b.kind !== 'const') return false
    const found = this.#defined(e.a)
    return found.kind === 'search' || (found.kind === 'load' && this.#places.has(found.buffer))
  }

  #defined(e: Expr): Expr {
    let out = e
    while (out.kind === 'var') {
      const value = this.lets.get(out.name)
      if (!value) break
      out = value
    }
    return out
  }

  #bounded(e: Expr, range: Ranged, { bounds }: Scope): Ranged {
    const said = bounds.size > 0 && e.kind !== 'const' ? bounds.get(keyOf(e)) : undefined
    if (!said) return range
    return { ...narrowed(range, ...said), ...(range.over ? { over: range.over } : {}) }
  }

  where(cond: Expr, scope: Scope): Scope {
    if (!this.#refine) return scope
    const bounds = new Map(scope.bounds)
    const before = bounds.size
    let narrower = false
    const say = (e: Expr, lo: number, hi: number): void => {
      const range = this.of(e, scope)
      if (range.over || (lo <= range.lo && hi >= range.hi)) return
      narrower = true
      const names: Expr[] = [e]
      for (let x = e; x.kind === 'var'; ) {
        const value = this.lets.get(x.name)
        if (!value) break
        names.push(value)
        x = value
      }
      for (const x of names) {
        if (x.kind === 'const') continue
        const said = bounds.get(keyOf(x)) ?? [Math.min(LOWEST, -this.#most), this.#most]
        bounds.set(keyOf(x), [Math.max(said[0], lo), Math.min(said[1], hi)])
      }
      // A bound of x + c bounds x as well.
      const sum = names.at(-1)!
      if (sum.kind === 'binary' && sum.op === 'add' && sum.b.kind === 'const')
        say(sum.a, lo - sum.b.value, hi - sum.b.value)
    }
    const read = (e: Expr): void => {
      const c = this.#defined(e)
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
      const [x, y] = [this.of(low, scope), this.of(high, scope)]
      if (x.over || y.over) return
      const [least, most] = [x.knownLo ? x.lo : -Infinity, y.knownHi ? y.hi : Infinity]
      if (c.op === 'eq') {
        say(low, y.knownLo ? y.lo : -Infinity, most)
        say(high, least, x.knownHi ? x.hi : Infinity)
      } else if (turned || c.op === 'lt' || c.op === 'le') {
        const gap = c.op === 'lt' || c.op === 'gt' ? 1 : 0
        say(low, -Infinity, most - gap)
        say(high, least + gap, Infinity)
      }
    }
    read(cond)
    return narrower || bounds.size > before ? scopeOf(bounds) : scope
  }
}

/** Returns the range of an index with this end (exclusive). */
const below = (extent: Interval): Interval => interval(0, Math.max(0, extent.hi - 1), true, extent.knownHi)

const upTo = (most: Interval): Interval => interval(0, Math.max(0, most.hi), true, most.knownHi)
