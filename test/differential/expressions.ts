/** Random expressions over what is in scope. */
import type { Choices } from '../support/choices.ts'
import type { Expr, Extent } from './model.ts'
import { computed, isFloat, type Type } from './numbers.ts'

/** A coordinate in scope: its name and what it runs over. */
export interface Coordinate {
  readonly name: string
  readonly axis: string
  readonly extent: Extent
}

/** A buffer that may be read: its dimensions, and where, if only there. */
export interface Readable {
  readonly buffer: string
  readonly type: Type
  readonly dimensions: readonly { readonly axis: string; readonly extent: Extent }[]
  readonly only?: readonly Expr[]
}

export interface Scope {
  readonly c: Choices
  /** The type that floating-point arithmetic is done in. */
  readonly float: Type
  readonly coordinates: readonly Coordinate[]
  readonly readable: readonly Readable[]
  /** Parameters and `let`s. */
  readonly named: readonly { readonly name: string; readonly type: Type }[]
  /** Infinities and NaN among the literals. */
  readonly special: boolean
}

export const int = (value: number): Expr => ({ kind: 'literal', type: 'i32', value })
const name = (n: string, type: Type): Expr => ({ kind: 'name', type, name: n })
export const coordinate = (n: string): Expr => name(n, 'i32')
const binary = (op: string, type: Type, a: Expr, b: Expr): Expr => ({ kind: 'binary', op, type, a, b })
const call = (fn: string, type: Type, ...args: Expr[]): Expr => ({ kind: 'call', fn, type, args })
export const cast = (type: Type, of: Expr): Expr => (of.type === type ? of : { kind: 'cast', type, of })

/** An index into a dimension: a coordinate as it is, mostly of its own extent, or something made of coordinates. */
function index(s: Scope, axis: string, extent: Extent): Expr {
  const { c } = s
  const own = s.coordinates.filter((x) => x.axis === axis)
  if (own.length > 0 && !c.chance(15)) return coordinate(c.pick(own).name)
  const alike = s.coordinates.filter((x) => x.extent.text === extent.text)
  const any = alike.length > 0 && !c.chance(15) ? alike : s.coordinates
  if (any.length === 0) return int(c.below(3))
  const one = c.pick(any)
  // A coordinate of another axis has to be computed with.
  const bare: Expr =
    one.extent.text === extent.text ? coordinate(one.name) : binary('+', 'i32', coordinate(one.name), int(0))
  switch (c.below(14)) {
    case 8:
      return binary('+', 'i32', bare, int(1))
    case 9:
      return binary('-', 'i32', bare, int(1))
    case 10:
      return binary(c.pick(['/', '%', '*']), 'i32', bare, int(2))
    case 11:
      return binary('+', 'i32', bare, coordinate(c.pick(s.coordinates).name))
    case 12:
      return int(c.below(3))
    case 13: {
      const lists = s.readable.filter((r) => r.type === 'i32' && r.dimensions.length === 1)
      if (lists.length === 0) return bare
      const list = c.pick(lists)
      return read(s, list, list.dimensions[0]!.extent.text === one.extent.text ? coordinate(one.name) : bare)
    }
    default:
      return bare
  }
}

function read(s: Scope, r: Readable, first?: Expr): Expr {
  const at = r.only ?? r.dimensions.map((d, k) => (k === 0 && first ? first : index(s, d.axis, d.extent)))
  return { kind: 'read', type: r.type, buffer: r.buffer, at }
}

/** A read of some buffer as a type that is computed with. */
function element(s: Scope, type: Type): Expr | undefined {
  const { c } = s
  const fitting = s.readable.filter((r) => computed(r.type) === type)
  const other = s.readable.filter((r) => r.type !== 'bool')
  const from = fitting.length > 0 && !c.chance(10) ? fitting : other
  return from.length > 0 ? cast(type, read(s, c.pick(from))) : undefined
}

function leaf(s: Scope, type: Type): Expr {
  const { c } = s
  const named = s.named.filter((n) => computed(n.type) === type)
  const kind = c.below(10)
  // A name is there to be used.
  if (kind < (named.length > 0 ? 3 : 5)) {
    const found = element(s, type)
    if (found) return found
  }
  if (kind <= 5 && named.length > 0) {
    const n = c.pick(named)
    return cast(type, name(n.name, n.type))
  }
  if (kind < 8 && s.coordinates.length > 0) return cast(type, coordinate(c.pick(s.coordinates).name))
  if (isFloat(type) && s.special && c.chance(30))
    return { kind: 'literal', type, value: c.pick([Infinity, -Infinity, NaN]) }
  // The last ones leave 8 bits, and the digits of halves, in a product or two.
  return {
    kind: 'literal',
    type,
    value: type === 'u32' ? c.below(4) : c.pick([1, 2, 0, -1, 3, -2, 77, -147]),
  }
}

/** An expression of a type that is computed with (f32, f64, i32, u32) or bool. */
export function expression(s: Scope, type: Type, depth: number): Expr {
  if (type === 'bool') return condition(s, depth)
  const { c } = s
  if (depth === 0 || c.chance(15)) return leaf(s, type)
  const sub = () => expression(s, type, depth - 1)
  switch (c.below(isFloat(type) ? 11 : 13)) {
    case 0:
    case 1:
    case 2:
      return binary('*', type, sub(), sub())
    case 3:
    case 4:
      return binary('+', type, sub(), sub())
    case 5:
      return binary('-', type, sub(), sub())
    case 6:
      return call(c.pick(['max', 'min']), type, sub(), sub())
    case 7:
      return call('select', type, condition(s, depth - 1), sub(), sub())
    case 8:
      return type === 'u32' ? sub() : { kind: 'unary', type, op: '-', of: sub() }
    case 9:
      if (type === 'u32') return sub()
      return call(c.pick(isFloat(type) ? ['abs', 'sign', 'floor', 'ceil', 'round'] : ['abs']), type, sub())
    case 10:
      return cast(type, expression(s, c.pick(others(s.float, type)), depth - 1))
    case 11:
      return quotient(c.pick(['/', '%', 'ceildiv']), type, sub(), sub())
    default:
      if (type === 'u32') return quotient(c.pick(['%', 'ceildiv']), type, sub(), sub())
      return c.chance(50)
        ? call(c.pick(['bit_xor', 'shift_left', 'shift_right']), type, sub(), sub())
        : call('popcount', type, sub())
  }
}

/** By anything but the number 0, which is refused. */
function quotient(op: string, type: Type, a: Expr, b: Expr): Expr {
  const by = b.kind === 'literal' && b.value === 0 ? { ...b, value: 2 } : b
  return op === 'ceildiv' ? call(op, type, a, by) : binary(op, type, a, by)
}

const others = (float: Type, type: Type): Type[] => [float, 'i32' as const].filter((t) => t !== type)

/** What a name may stand for: a value as it is computed, or one that was cast to a narrower type. */
export function nameable(s: Scope): Expr {
  const { c } = s
  const type = c.chance(50)
    ? c.pick([s.float, 'i32' as const])
    : c.pick(['u8', 'i8', 'f16', 'bf16', 'u32'] as const)
  return cast(type, expression(s, computed(type), 2))
}

/** Conditions of every kind: comparisons, connectives, elements, casts, `select`. */
export function condition(s: Scope, depth: number): Expr {
  const { c } = s
  const inner = Math.max(0, depth - 1)
  const bools = s.readable.filter((r) => r.type === 'bool')
  switch (depth === 0 ? 0 : c.below(9)) {
    case 4:
      return binary('and', 'bool', condition(s, inner), condition(s, inner))
    case 5:
      return binary('or', 'bool', condition(s, inner), condition(s, inner))
    case 6:
      return { kind: 'unary', type: 'bool', op: 'not', of: condition(s, inner) }
    case 7:
      return bools.length > 0 ? read(s, c.pick(bools)) : condition(s, inner)
    case 8:
      return call('select', 'bool', condition(s, inner), condition(s, inner), condition(s, inner))
    default: {
      const type = depth > 0 && c.chance(10) ? 'bool' : c.pick([s.float, 'i32' as const])
      const op = c.pick(['<', '>', '==', '<=', '>=', '!='])
      return binary(op, 'bool', expression(s, type, inner), expression(s, type, inner))
    }
  }
}
