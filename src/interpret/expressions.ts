/**
 * Expressions of a Stage II kernel as closures over slots of variables and cells of buffers. Every index is checked.
 */
import { InternalError, invariant } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import { compileExpr, type Leaves } from '../ir/evaluate.ts'
import type { Expr, Load } from '../ir/expr.ts'
import { treeSize } from '../ir/expr-tree.ts'
import type { Buffer, Store } from '../ir/loops.ts'
import { convert } from '../ir/numeric.ts'
import { printExpr } from '../ir/print-stage2.ts'
import type { Cells } from './memory-cells.ts'
import { firstHit } from './search.ts'

export type Value = () => number

/** Nodes from which on a value is kept for the evaluation that is going on. */
const WORTH_KEEPING = 64

/** Storage of a variable's current value. */
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
  /** Rank of the thread whose registers are accessed; `null` if one thread owns all registers. */
  readonly #rank: (() => number) | null

  constructor(rank: (() => number) | null) {
    this.#rank = rank
  }

  slot(name: string): Slot {
    const slot = this.#vars.get(name) ?? { value: 0 }
    this.#vars.set(name, slot)
    return slot
  }

  /** Starts a new evaluation: variables or memory changed, so cached common subexpressions are dropped. */
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
    const rank = cell.buffer.scope === 'register' ? this.#rank : null
    const outside = (k: number, d: number, n: number): never => {
      throw new InternalError(
        `${text()}: index ${k} of dimension ${d} is outside of 0..${n} (${this.#where()})`,
      )
    }
    const [first, second] = index
    if (first && index.length === 1 && !rank)
      return () => {
        const k = first()
        const n = cell.sizes[0]!
        return k >= 0 && k < n ? k : outside(k, 0, n)
      }
    if (first && second && index.length === 2 && !rank)
      return () => {
        const { sizes } = cell
        const i = first()
        if (!(i >= 0 && i < sizes[0]!)) outside(i, 0, sizes[0]!)
        const j = second()
        return j >= 0 && j < sizes[1]! ? i * sizes[1]! + j : outside(j, 1, sizes[1]!)
      }
    return () => {
      let flat = rank ? rank() : 0
      for (let d = 0; d < index.length; d++) {
        const k = index[d]!()
        const n = cell.sizes[d]!
        if (!(k >= 0 && k < n)) outside(k, d, n)
        flat = flat * n + k
      }
      return flat
    }
  }

  /** Store to an element; `to`: storage type. An element reduced in a wider type is rounded only when it is read. */
  writer(t: Load | Store, from: Dtype, to?: Dtype): (value: number) => void {
    const cell = this.cell(t.buffer)
    const address = this.address(t)
    const kept = to ?? cell.buffer.dtype
    if (kept === 'f32')
      return (value) => {
        cell.data[address()] = Math.fround(value)
      }
    const toType = convert(from, kept)
    return (value) => {
      const k = address()
      cell.data[k] = toType(value)
    }
  }

  #where(): string {
    return [...this.#vars].map(([name, slot]) => `${name}=${slot.value}`).join(' ')
  }

  converted(e: Expr, to: Dtype): Value {
    const value = this.of(e)
    if (e.dtype === to) return value
    const toType = convert(e.dtype, to)
    return () => toType(value())
  }

  /** An element as it is kept, which is in the type that it is combined in. */
  kept(target: Load, to: Dtype): Value {
    const cell = this.cell(target.buffer)
    const address = this.address(target)
    const { accumulate } = cell.buffer
    if (accumulate === to) return () => cell.data[address()]!
    const toType = convert(accumulate, to)
    return () => toType(cell.data[address()]!)
  }

  /** `operands`: variables of a reduction's own, which may have names of the kernel. */
  of(e: Expr, operands?: ReadonlyMap<string, Slot>): Value {
    const leaves: Leaves<void> = {
      variable: ({ name }) => {
        const slot = operands?.get(name) ?? this.slot(name)
        return () => slot.value
      },
      builtin: ({ axis }) => {
        throw new InternalError(`${axis} does not occur in Stage II`)
      },
      load: (x) => {
        const cell = this.cell(x.buffer)
        const address = this.address(x)
        const { dtype, accumulate } = cell.buffer
        if (accumulate === dtype) return () => cell.data[address()]!
        // An element that is combined in a wider type has it until it is read.
        const toType = convert(accumulate, dtype)
        return () => toType(cell.data[address()]!)
      },
      search: (x, of) => {
        const cell = this.cell(x.buffer)
        const [lo, hi, wanted] = [of(x.lo), of(x.hi), of(x.value)]
        return () => firstHit(x, [lo(), hi(), wanted()], cell.data.length, (p) => cell.data[p]!)
      },
      node: (x, value) => (treeSize(x) > WORTH_KEEPING ? this.#kept(value) : value),
    }
    return compileExpr(e, leaves, operands ? new Map() : this.#values)
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
}
