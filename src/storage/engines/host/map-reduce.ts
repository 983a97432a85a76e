/** Maps and reductions over the entries of a frame: expressions in chunks, and frequent patterns in a single pass. */
import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { ready } from '../../../ast/work.ts'
import { borrowExact, MAX_POSITIONS } from '../../../columns/allocate.ts'
import { ENTRY, type Engine, type Frame } from '../../../columns/column-engine.ts'
import { checkWords } from '../../../columns/coordmap.ts'
import { digitOf, writeDigit } from '../../../columns/expression-kernels.ts'
import type { Column, Names, Program, Step } from '../../../columns/expression-program.ts'
import { CHUNK, compile } from '../../../columns/expression-program.ts'
import { type Expr, int, isZero, variable } from '../../../ir/expressions/expr.ts'
import { freeVars, rewriteExpr } from '../../../ir/expressions/expr-tree.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import { isWord } from '../../../ir/values/dtype.ts'
import { pointOf } from '../../storage.ts'
import { dropFalse, extremes } from './extremes.ts'

export type F = Frame<TypedArray>
export type Host = Engine<TypedArray>

const namesOf = (frame: F): Names => ({
  column: (name) => frame.column(name) as Column | undefined,
  size: (name) => frame.sizes.get(name),
  table: (name) => {
    const values = frame.tables.get(name)
    return values && { values, fill: frame.fills.get(name) ?? 0 }
  },
  range: (name) => frame.range(name),
  entry: ENTRY,
  all: () => ({
    variables: [...frame.names(), ...frame.sizes.keys()].filter((n) => !n.startsWith('@')),
    tables: [...frame.tables.keys()].filter((n) => !n.startsWith('@')),
  }),
})

/** Compiles expressions into steps over chunks of entries. */
const programOf = (frame: F, exprs: readonly Expr[]): Program =>
  compile(
    exprs.map((e) => inlineSizes(frame, e)),
    namesOf(frame),
  )

/** Calls `consume` for each chunk of `n` entries from `lo` on; its arrays are reused. */
export function forEachChunk(
  frame: F,
  exprs: readonly Expr[],
  consume: (values: Program['outputs'], lo: number, n: number) => void,
): void {
  const { steps, outputs } = programOf(frame, exprs)
  for (let lo = 0; lo < frame.n; lo += CHUNK) {
    const n = Math.min(CHUNK, frame.n - lo)
    for (const step of steps) step.run(lo, n)
    consume(outputs, lo, n)
  }
}

const inlineSizes = (frame: F, e: Expr): Expr =>
  rewriteExpr(e, (x) => {
    const size = x.kind === 'var' && !frame.column(x.name) ? frame.sizes.get(x.name) : undefined
    return size === undefined ? undefined : int(size)
  })

/** The column of an expression that is a bare column name. */
export function columnOf(frame: F, e: Expr): Int32Array | undefined {
  const column = e.kind === 'var' ? frame.column(e.name) : undefined
  return column instanceof Int32Array ? column : undefined
}

/** The values of an expression as i32; the column itself for a bare column name. @throws SptError `format/map-range` */
export function valuesOf(frame: F, e: Expr, description = 'a part of the map'): Int32Array {
  return columnOf(frame, e) ?? newValues(frame, e, description)
}

export function newValues(frame: F, e: Expr, description = 'a part of the map'): Int32Array {
  const out = borrowExact(frame.n, 'entries')
  const column = columnOf(frame, e)
  if (column) {
    out.set(column)
    return out
  }
  if (writeSimple(frame, inlineSizes(frame, e), out)) return out
  forEachChunk(frame, [e], ([values], lo, n) => {
    const misfit = narrow(values!, out, lo, n)
    if (misfit >= 0) rejectRange(frame, e, lo + misfit, values![misfit]!, description)
  })
  return out
}

/** Copies values as i32; returns the first index whose value is out of range, or −1. */
function narrow(values: Float64Array, out: Int32Array, lo: number, n: number): number {
  for (let k = 0; k < n; k++) {
    const value = values[k]!
    if (!(value >= -MAX_POSITIONS - 1 && value <= MAX_POSITIONS)) return k
    out[lo + k] = value
  }
  return -1
}

function rejectRange(frame: F, e: Expr, entry: number, value: number, description: string): never {
  // Columns of queries have no name in the source.
  const names = frame.names().filter((n) => !/^@|#/.test(n))
  const coordinates = names.map((n) => frame.column(n)![entry]!)
  return failWith('format/map-range', `at ${pointOf(names, coordinates)} ${description} is ${value}`, {
    ...(e.span && { span: e.span }),
    expected: 'a 32-bit integer',
    hint: 'correct the map, or the extent of the axis',
  })
}

/** Entry numbers, digits, `table[a]`, `a · c + b`, `table[a] + b` in one pass; false for others, and on overflow. */
function writeSimple(frame: F, e: Expr, out: Int32Array): boolean {
  if (e.kind === 'var' && e.name === ENTRY) {
    for (let k = 0; k < out.length; k++) out[k] = k
    return true
  }
  const digit = digitOf(e)
  const input = digit && columnOf(frame, variable(digit.input))
  if (input) {
    writeDigit(digit, input, out)
    return true
  }
  const tableLoad = loadOf(frame, e, out)
  if (tableLoad) return gatherTable(out, ...tableLoad)
  if (e.kind !== 'binary' || e.op !== 'add' || !isWord(e.dtype)) return false
  const low = columnOf(frame, e.b)
  if (!low) return false
  const offsetLoad = loadOf(frame, e.a, out)
  if (offsetLoad) return gatherAdd(out, ...offsetLoad, low)
  const { a } = e
  const scaled = a.kind === 'binary' && a.op === 'mul' && a.b.kind === 'const'
  const high = operand(frame, scaled ? a.a : a, out)
  return high !== null && multiplyAdd(out, high, scaled && a.b.kind === 'const' ? a.b.value : 1, low)
}

function loadOf(frame: F, e: Expr, out: Int32Array): [Int32Array, Int32Array] | null {
  if (e.kind !== 'load' || e.index.length !== 1) return null
  const table = frame.tables.get(e.buffer)
  const index = table instanceof Int32Array ? operand(frame, e.index[0]!, out) : null
  return index && [table as Int32Array, index]
}

const operand = (frame: F, e: Expr, out: Int32Array): Int32Array | null =>
  columnOf(frame, e) ?? (writeSimple(frame, e, out) ? out : null)

function multiplyAdd(out: Int32Array, high: Int32Array, scale: number, low: Int32Array): boolean {
  for (let e = 0; e < out.length; e++) {
    const x = high[e]! * scale + low[e]!
    out[e] = x
    if (out[e] !== x) return false
  }
  return true
}

/** Returns false if an index is out of range. */
function gatherTable(out: Int32Array, table: Int32Array, index: Int32Array): boolean {
  for (let e = 0; e < out.length; e++) {
    const i = index[e]!
    if (i < 0 || i >= table.length) return false
    out[e] = table[i]!
  }
  return true
}

/** An out-of-range index yields NaN, which differs from every i32, so it returns false. */
function gatherAdd(out: Int32Array, table: Int32Array, index: Int32Array, low: Int32Array): boolean {
  for (let e = 0; e < out.length; e++) {
    const x = table[index[e]!]! + low[e]!
    out[e] = x
    if (out[e] !== x) return false
  }
  return true
}

export const valuesAt: Host['valuesAt'] = (frame, exprs, entry) => {
  const { steps, outputs } = programOf(frame, exprs)
  for (const step of steps) step.run(entry, 1)
  return ready(outputs.map((out) => out[0]!))
}

/** Integers beyond 32 bits in intermediate results are rejected. */
export const findFirst: Host['findFirst'] = (frame, conditions) => {
  const ranges = new Map<Column, readonly [number, number]>()
  const rangeOf = (name: string): readonly [number, number] | null => {
    const column = columnOf(frame, variable(name))
    if (!column) return null
    const range = ranges.get(column) ?? extremes(column, 0, column.length)
    ranges.set(column, range)
    return range
  }
  const undecided = conditions.map((e) => dropFalse(frame, e, rangeOf))
  const firstEntries = scanConditions(
    frame,
    undecided.filter((e) => !isZero(e)),
    0,
    () => {},
  )
  return ready(undecided.map((e) => (isZero(e) ? -1 : firstEntries.shift()!)))
}

export const computeChecked: Host['computeChecked'] = (frame, name, e, conditions) => {
  const out = borrowExact(frame.n, 'entries')
  const firstEntries = scanConditions(frame, [...conditions, e], 1, (values, lo, n) => {
    const misfit = narrow(values, out, lo, n)
    if (misfit >= 0) rejectRange(frame, e, lo + misfit, values[misfit]!, 'the number of a part')
  })
  frame.set(name, out)
  return ready(firstEntries)
}

function scanConditions(
  frame: F,
  exprs: readonly Expr[],
  valueCount: number,
  consume: (values: Float64Array, lo: number, n: number) => void,
): number[] {
  const { n } = frame
  const { steps, outputs } = programOf(frame, exprs)
  const count = exprs.length - valueCount
  const firstEntries = new Array<number>(count).fill(-1)
  for (let lo = 0; lo < n; lo += CHUNK) {
    const length = Math.min(CHUNK, n - lo)
    for (const step of steps) {
      step.run(lo, length)
      if (valueCount === 0 && !step.fits) checkStep(frame, step, lo, length)
    }
    for (let k = 0; k < count; k++)
      if (firstEntries[k]! < 0) firstEntries[k] = firstNonZero(outputs[k]!, lo, length)
    if (valueCount > 0) consume(outputs[count]!, lo, length)
    if (count > 0 && firstEntries.every((x) => x >= 0)) break
  }
  return firstEntries
}

function firstNonZero(values: Float64Array, lo: number, n: number): number {
  for (let k = 0; k < n; k++) if (values[k] !== 0) return lo + k
  return -1
}

function checkStep(frame: F, step: Step, lo: number, n: number): void {
  const names = [...freeVars(step.expr)].filter((name) => columnOf(frame, variable(name)))
  const columns = names.map((name) => columnOf(frame, variable(name))!)
  const displayNames = names.map((name) => name.replace(/^@/, ''))
  checkWords(step, displayNames, columns, lo, n)
}

export const bounds: Host['bounds'] = (frame, e) => {
  const column = columnOf(frame, e)
  if (column) return ready(extremes(column, 0, column.length))
  let [lo, hi] = [0, 0]
  forEachChunk(frame, [e], ([values], _, n) => {
    const [a, b] = extremes(values!, 0, n)
    if (a < lo) lo = a
    if (b > hi) hi = b
  })
  return ready([lo, hi])
}
