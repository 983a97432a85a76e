/**
 * Compiles expressions of a Stage II kernel to closures over variable slots and buffer cells. Every index is checked.
 */
import { InternalError, invariant } from '../ast/diagnostics/diagnostic.ts'
import type { Expr, Load, Search } from '../ir/expressions/expr.ts'
import { treeSize } from '../ir/expressions/expr-tree.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import type { Buffer, Store } from '../ir/statements/loops.ts'
import type { ExprType } from '../ir/values/dtype.ts'
import { compileExpr, type Leaves } from '../ir/values/evaluate.ts'
import { convert } from '../ir/values/numeric.ts'
import { unpackFields } from '../ir/values/packed-fields.ts'
import type { Cells } from './memory-cells.ts'

type Value = () => number

/** Expressions with more nodes than this are memoised within an evaluation. */
const MIN_MEMOISED_NODES = 64

/** Storage of a variable's current value. */
interface Slot {
  value: number
}

/** A buffer with its sizes and elements. */
export interface Cell {
  readonly buffer: Buffer
  /** Sizes by dimension, and the elements; an allocation gets new elements each time it runs. */
  sizes: readonly number[]
  data: Cells
}

/** @param rankOf rank of the thread whose registers are accessed; null if one thread owns all registers */
export function expressionsOf(rankOf: (() => number) | null) {
  const vars = new Map<string, Slot>()
  const cells = new Map<string, Cell>()
  /** Compiled nodes outside of reducers. */
  const values = new Map<Expr, Value>()
  /** Number of the current evaluation. */
  let evaluations = 0
  const slotOf = (name: string): Slot => {
    const slot = vars.get(name) ?? { value: 0 }
    vars.set(name, slot)
    return slot
  }
  /** Starts a new evaluation: variables or memory changed, so cached common subexpressions are dropped. */
  const begin = (): void => {
    evaluations++
  }
  const declare = (cell: Cell): void => {
    cells.set(cell.buffer.name, cell)
  }
  const find = (name: string): Cell | undefined => cells.get(name)
  const cellOf = (name: string): Cell => {
    const cell = find(name)
    invariant(cell, `no buffer ${name} here`)
    return cell
  }
  /** The flat position of an access; an index out of range is a bug of a rewrite. */
  const addressOf = (t: Load | Store): (() => number) => {
    const cell = cellOf(t.buffer)
    const index = t.index.map((e) => compile(e))
    const text = (): string => `${t.buffer}[${t.index.map((e) => printExpr(e)).join(', ')}]`
    const rank = cell.buffer.scope === 'register' ? rankOf : null
    const fail = (k: number, d: number, n: number): never => {
      throw new InternalError(
        `${text()}: index ${k} of dimension ${d} is outside of 0..${n} (${variablesText()})`,
      )
    }
    return () => {
      let flat = rank ? rank() : 0
      for (let d = 0; d < index.length; d++) {
        const k = index[d]!()
        const n = cell.sizes[d]!
        if (!(k >= 0 && k < n)) fail(k, d, n)
        flat = flat * n + k
      }
      return flat
    }
  }
  /** Compiles a store of a `from` value; `to`: storage type. An element reduced in a wider type is rounded only on reads. */
  const writer = (t: Load | Store, from: ExprType, to?: ExprType): ((value: number) => void) => {
    const cell = cellOf(t.buffer)
    const address = addressOf(t)
    const storedType = to ?? cell.buffer.dtype
    const convertValue = convert(from, storedType)
    return (value) => {
      const k = address()
      cell.data[k] = convertValue(value)
    }
  }
  const variablesText = (): string => [...vars].map(([name, slot]) => `${name}=${slot.value}`).join(' ')
  const compileAs = (e: Expr, to: ExprType): Value => {
    const value = compile(e)
    if (e.dtype === to) return value
    const convertValue = convert(e.dtype, to)
    return () => convertValue(value())
  }
  /** Reads an element without rounding: it is stored in the type of its accumulation. */
  const compileAccumulator = (target: Load, to: ExprType): Value => {
    const cell = cellOf(target.buffer)
    const address = addressOf(target)
    const { accumulate } = cell.buffer
    if (accumulate === to) return () => cell.data[address()]!
    const convertValue = convert(accumulate, to)
    return () => convertValue(cell.data[address()]!)
  }
  /** Compiles an expression; `operands`: variables of a reducer, which take precedence over variables of the kernel. */
  const compile = (e: Expr, operands?: ReadonlyMap<string, Slot>): Value => {
    const leaves: Leaves<void> = {
      variable: ({ name }) => {
        const slot = operands?.get(name) ?? slotOf(name)
        return () => slot.value
      },
      builtin: ({ axis }) => {
        throw new InternalError(`${axis} does not occur in Stage II`)
      },
      load: (x) => {
        const cell = cellOf(x.buffer)
        const address = addressOf(x)
        const { dtype, accumulate } = cell.buffer
        if (accumulate === dtype) return () => cell.data[address()]!
        // An element that accumulates in a wider type is rounded when it is read.
        const convertValue = convert(accumulate, dtype)
        return () => convertValue(cell.data[address()]!)
      },
      search: (x, compileOperand) => {
        const cell = cellOf(x.buffer)
        const [lo, hi, target] = [compileOperand(x.lo), compileOperand(x.hi), compileOperand(x.value)]
        return () => findPosition(x, [lo(), hi(), target()], cell.data.length, (p) => cell.data[p]!)
      },
      node: (x, value) => (treeSize(x) > MIN_MEMOISED_NODES ? memoise(value) : value),
    }
    return compileExpr(e, leaves, operands ? new Map() : values)
  }
  const memoise = (value: Value): Value => {
    let evaluation = -1
    let last = 0
    return () => {
      if (evaluation !== evaluations) {
        last = value()
        evaluation = evaluations
      }
      return last
    }
  }
  return { slotOf, begin, declare, find, cellOf, addressOf, writer, compileAs, compileAccumulator, compile }
}

// Interpretation of searches in index arrays, shared by all stages.

const PREDICATES: Readonly<Record<Search['method'], (x: number, target: number) => boolean>> = {
  lower: (x, target) => x >= target,
  upper: (x, target) => x > target,
  next: (x, target) => x > target,
  linear: (x, target) => x === target,
}

/** The first position in lo .. hi that satisfies the search, otherwise hi; `readWord` reads one of `length` words. */
export function findPosition(
  e: Search,
  [lo, hi, target]: readonly [number, number, number],
  length: number,
  readWord: (position: number) => number,
): number {
  const matches = PREDICATES[e.method]
  const fieldsPerWord = 32 / (e.bits ?? 32)
  for (let p = lo; p < hi; p++) {
    const word = Math.floor(p / fieldsPerWord)
    if (!(word >= 0 && word < length)) throw new InternalError(`${printExpr(e)} leaves its buffer at ${p}`)
    const x =
      e.bits === undefined
        ? readWord(p)
        : unpackFields([readWord(word)], e.bits, (p % fieldsPerWord) + 1)[p % fieldsPerWord]!
    if (matches(x, target)) return p
  }
  return hi
}
