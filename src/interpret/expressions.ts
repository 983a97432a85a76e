/**
 * Expressions of a Stage II kernel as closures over slots of variables and cells of buffers. Every index is checked.
 * `f32` is rounded after every operation, integers wrap; 16-bit floats are held as plain numbers, unrounded.
 */
import { InternalError, invariant, unreachable } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Expr, Load, Search, Select } from '../ir/expr.ts'
import { treeSize } from '../ir/expr-tree.ts'
import type { Buffer, Store } from '../ir/loops.ts'
import { arithmetic, COMPARE, convert, mathOf, wrap } from '../ir/numeric.ts'
import { printExpr } from '../ir/print-stage2.ts'
import type { Cells } from './memory-cells.ts'
import { firstHit } from './search.ts'

export type Value = () => number

/** Nodes from which on a value is kept for the evaluation that is going on. */
const WORTH_KEEPING = 64

/** Where a variable's value stands. */
interface Slot {
  value: number
}

/** A buffer with its elements. */
export interface Cell {
  readonly buffer: Buffer
  /** Sizes by dimension, and the elements; an allocation gets both each time it is reached. */
  sizes: readonly number[]
  data: Cells
}

export class Expressions {
  readonly #vars = new Map<string, Slot>()
  readonly #cells = new Map<string, Cell>()
  /** Closures of nodes outside of reducers. */
  readonly #values = new Map<Expr, Value>()
  /** The number of the evaluation that is going on. */
  #now = 0
  /** Which thread's registers are meant. */
  readonly #rank: () => number

  constructor(rank: () => number) {
    this.#rank = rank
  }

  slot(name: string): Slot {
    const slot = this.#vars.get(name) ?? { value: 0 }
    this.#vars.set(name, slot)
    return slot
  }

  /** Before anything is evaluated with other values of variables or memory: what is shared is computed once in between. */
  begin(): void {
    this.#now++
  }

  /** The cell of a buffer that is there from here on. */
  declare(cell: Cell): void {
    this.#cells.set(cell.buffer.name, cell)
  }

  known(name: string): Cell | undefined {
    return this.#cells.get(name)
  }

  cell(name: string): Cell {
    const cell = this.known(name)
    invariant(cell, `no buffer ${name} here`)
    return cell
  }

  /** The flat position of an access; out of range is a bug of a rewrite. */
  address(t: Load | Store): () => number {
    const cell = this.cell(t.buffer)
    const index = t.index.map((e) => this.of(e))
    const text = (): string => `${t.buffer}[${t.index.map((e) => printExpr(e)).join(', ')}]`
    const own = cell.buffer.scope === 'register'
    const outside = (k: number, d: number, n: number): never => {
      throw new InternalError(
        `${text()}: index ${k} of dimension ${d} is outside of 0..${n} (${this.#where()})`,
      )
    }
    const [first] = index
    if (first && index.length === 1 && !own)
      return () => {
        const k = first()
        const n = cell.sizes[0]!
        return k >= 0 && k < n ? k : outside(k, 0, n)
      }
    return () => {
      let flat = own ? this.#rank() : 0
      for (let d = 0; d < index.length; d++) {
        const k = index[d]!()
        const n = cell.sizes[d]!
        if (!(k >= 0 && k < n)) outside(k, d, n)
        flat = flat * n + k
      }
      return flat
    }
  }

  #where(): string {
    return [...this.#vars].map(([name, slot]) => `${name}=${slot.value}`).join(' ')
  }

  converted(e: Expr, to: Dtype): Value {
    const value = this.of(e)
    if (e.dtype === to) return value
    const toType = round(to, convert(e.dtype, to))
    return () => toType(value())
  }

  /** `operands`: variables of a reduction's own, which may have names of the kernel. */
  of(e: Expr, operands?: ReadonlyMap<string, Slot>): Value {
    const known = operands ? new Map<Expr, Value>() : this.#values
    const go = (x: Expr): Value => {
      let value = known.get(x)
      if (!value) {
        value = this.#compiled(x, go, operands)
        if (treeSize(x) > WORTH_KEEPING) value = this.#kept(value)
        known.set(x, value)
      }
      return value
    }
    return go(e)
  }

  #kept(value: Value): Value {
    let at = -1
    let last = 0
    return () => {
      if (at !== this.#now) {
        last = value()
        at = this.#now
      }
      return last
    }
  }

  #compiled(e: Expr, go: (e: Expr) => Value, operands?: ReadonlyMap<string, Slot>): Value {
    switch (e.kind) {
      case 'const': {
        const { value } = e
        return () => value
      }
      case 'var': {
        const slot = operands?.get(e.name) ?? this.slot(e.name)
        return () => slot.value
      }
      case 'unary': {
        const x = go(e.x)
        if (e.op === 'not') return () => (x() === 0 ? 1 : 0)
        const toType = wrap(e.dtype)
        return () => toType(-x())
      }
      case 'binary':
        return this.#binary(e.op, go(e.a), go(e.b), e.dtype)
      case 'call': {
        const [x, y] = e.args.map(go)
        const f = mathOf(e.fn)
        const toType = round(e.dtype, wrap(e.dtype))
        return y ? () => toType(f(x!(), y())) : () => toType(f(x!(), 0))
      }
      case 'select':
        return this.#select(e, go)
      case 'cast': {
        const x = go(e.x)
        const toType = round(e.dtype, convert(e.x.dtype, e.dtype))
        return () => toType(x())
      }
      case 'load': {
        const cell = this.cell(e.buffer)
        const address = this.address(e)
        return () => cell.data[address()]!
      }
      case 'search':
        return this.#search(e, go)
      case 'builtin':
        throw new InternalError(`${e.axis} does not occur in Stage II`)
      default:
        return unreachable(e)
    }
  }

  #binary(op: Extract<Expr, { kind: 'binary' }>['op'], a: Value, b: Value, dtype: Dtype): Value {
    if (op === 'and') return () => (a() !== 0 && b() !== 0 ? 1 : 0)
    if (op === 'or') return () => (a() !== 0 || b() !== 0 ? 1 : 0)
    if (op === 'lt' || op === 'le' || op === 'gt' || op === 'ge' || op === 'eq' || op === 'ne') {
      const f = COMPARE[op]
      return () => f(a(), b())
    }
    // The most frequent, without a call.
    if (dtype === 'i32' && op === 'add') return () => (a() + b()) | 0
    if (dtype === 'i32' && op === 'mul') return () => Math.imul(a(), b())
    if (dtype === 'f32' && op === 'add') return () => Math.fround(a() + b())
    if (dtype === 'f32' && op === 'mul') return () => Math.fround(a() * b())
    const f = arithmetic(op, dtype)
    return dtype === 'f32' ? () => Math.fround(f(a(), b())) : () => f(a(), b())
  }

  #select(e: Select, go: (e: Expr) => Value): Value {
    const cond = go(e.cond)
    const then = go(e.then)
    const otherwise = go(e.else)
    return () => (cond() !== 0 ? then() : otherwise())
  }

  #search(e: Search, go: (e: Expr) => Value): Value {
    const cell = this.cell(e.buffer)
    const [lo, hi, wanted] = [go(e.lo), go(e.hi), go(e.value)]
    return () => firstHit(e, [lo(), hi(), wanted()], cell.data.length, (p) => cell.data[p]!)
  }
}

/** As an element of type `t`. */
export const round = (t: Dtype, f: (x: number) => number): ((x: number) => number) =>
  t === 'f32' ? (x) => Math.fround(f(x)) : f
