/** Coordinate maps over whole coordinate arrays. */
import { fail } from '../ast/diagnostic.ts'
import type { Expr } from '../ir/expr.ts'
import { MAX_POSITIONS } from './allocate.ts'
import { digitOf, firstBeyond, firstUnjoined, joinedOf, writeDigit } from './digits.ts'
import { CHUNK, type Column, compile, type MapTable, type Step } from './expression-program.ts'
import { borrow, renewed } from './scratch.ts'

/** One component of a map: the axis it is the coordinate of, and that axis' extent. */
export interface Component {
  readonly name: string
  readonly extent: number
}

export interface MapInput {
  readonly map: readonly Expr[]
  /** The variables of `map` that have a column: coordinates and queries, in the order of the columns. */
  readonly inputs: readonly string[]
  /** The other variables: sizes and parameters. */
  readonly sizes?: ReadonlyMap<string, number> | undefined
  /** What `map` loads: lists and the permutations of sorts. */
  readonly tables?: ReadonlyMap<string, MapTable> | undefined
  /** Checks the results against these extents; they must fit an i32 in any case. */
  readonly outputs?: readonly Component[] | undefined
  /** The results are known to lie within `outputs`: what costs a pass is not checked. */
  readonly inRange?: boolean | undefined
  /** The results are given back, if they are no inputs: their arrays may be larger than they need to be. */
  readonly temporary?: boolean | undefined
  /** Also checks that every intermediate result fits an i32, as kernels compute them. */
  readonly strict?: boolean | undefined
  /** Inputs are at least 0 and below these, where known: `strict` checks only what can overflow then. */
  readonly extents?: readonly (number | undefined)[] | undefined
}

/**
 * `result[k][e]` is `map[k]` at `(columns[0][e], columns[1][e], …)`. A component that is a coordinate as it is
 * gives that coordinate's own array. O(entries × operations).
 * @throws SptError `format/map-range`, `format/map-overflow`, `format/map-expression`, `format/unknown-name`
 */
export function applyMap(input: MapInput, columns: readonly Column[]): Int32Array[] {
  const n = columns[0]?.length ?? 0
  const results = input.map.map((e, k) => columnOf(input, columns, e, k) ?? digitColumn(input, columns, e, k))
  const open = results.flatMap((r, k) => (r === null ? [k] : []))
  const program = compile({ ...input, exprs: open.map((k) => input.map[k]!) }, columns)
  const make = input.temporary ? borrow : renewed
  const mapped = open.map(() => make(n, 'mapped coordinates'))
  for (let lo = 0; lo < n; lo += CHUNK) {
    const length = Math.min(CHUNK, n - lo)
    for (const step of program.steps) {
      step.run(lo, length)
      if (input.strict && !step.fits) checkInterval(step, input, columns, lo, length)
    }
    for (let k = 0; k < open.length; k++)
      store(program.outputs[k]!, mapped[k]!, input, columns, open[k]!, lo, length)
  }
  open.forEach((k, at) => {
    results[k] = mapped[at]!
  })
  return results.map((r) => r!)
}

/** A component that is an input, within range. */
function columnOf(input: MapInput, columns: readonly Column[], e: Expr, at: number): Int32Array | null {
  if (e.kind !== 'var') return null
  const k = input.inputs.indexOf(e.name)
  const column = columns[k]
  if (!(column instanceof Int32Array)) return null
  const to = input.outputs?.[at]
  if (!to || input.inRange) return column
  for (let s = 0; s < column.length; s++) if (column[s]! < 0 || column[s]! >= to.extent) return null
  return column
}

/** A component that is a digit of an input. */
function digitColumn(input: MapInput, columns: readonly Column[], e: Expr, at: number): Int32Array | null {
  const digit = digitOf(e)
  const column = digit && columns[input.inputs.indexOf(digit.input)]
  if (!digit || !(column instanceof Int32Array)) return null
  const out = (input.temporary ? borrow : renewed)(column.length, 'mapped coordinates')
  writeDigit(digit, column, out)
  const to = input.outputs?.[at]
  const wrong = to && !input.inRange ? firstBeyond(out, to.extent - 1) : -1
  if (wrong >= 0) outOfRange(input, columns, at, wrong, out[wrong]!)
  return out
}

function store(
  from: Float64Array,
  to: Int32Array,
  input: MapInput,
  columns: readonly Column[],
  k: number,
  lo: number,
  n: number,
): void {
  const top = input.outputs ? Math.min(input.outputs[k]!.extent - 1, MAX_POSITIONS) : MAX_POSITIONS
  const bottom = input.outputs ? 0 : -MAX_POSITIONS - 1
  for (let e = 0; e < n; e++) {
    const v = from[e]!
    if (!(v >= bottom && v <= top)) outOfRange(input, columns, k, lo + e, v)
    to[lo + e] = v
  }
}

/**
 * Whether a condition over the columns holds, as 1 or 0 for each entry.
 * @throws SptError `format/map-expression`, `format/unknown-name`
 */
export function applyCondition(
  condition: Expr,
  input: Omit<MapInput, 'map' | 'outputs' | 'strict'>,
  columns: readonly Column[],
): Uint8Array {
  const n = columns[0]?.length ?? 0
  const out = new Uint8Array(n)
  const { steps, outputs } = compile({ ...input, exprs: [condition] }, columns)
  const [from] = outputs
  for (let lo = 0; lo < n; lo += CHUNK) {
    const length = Math.min(CHUNK, n - lo)
    for (const step of steps) step.run(lo, length)
    for (let e = 0; e < length; e++) if (from![e] !== 0) out[lo + e] = 1
  }
  return out
}

/**
 * The first entry where a map does not give the coordinates in `wanted`, with what it gives instead; `null` where
 * there is none. Checks 32-bit overflow as `strict` does.
 * @throws SptError `format/map-overflow`, `format/map-expression`, `format/unknown-name`
 */
export function firstDifference(
  input: Omit<MapInput, 'outputs' | 'strict'>,
  columns: readonly Column[],
  wanted: readonly Int32Array[],
): { readonly entry: number; readonly found: readonly number[] } | null {
  const n = columns[0]?.length ?? 0
  const open = input.map.flatMap((e, k) => (givesBack(input, columns, e, wanted[k]!) ? [] : [k]))
  const { steps, outputs } = compile({ ...input, exprs: open.map((k) => input.map[k]!) }, columns)
  for (let lo = 0; lo < n && open.length > 0; lo += CHUNK) {
    const length = Math.min(CHUNK, n - lo)
    for (const step of steps) {
      step.run(lo, length)
      if (!step.fits) checkInterval(step, input, columns, lo, length)
    }
    for (let at = 0; at < open.length; at++) {
      const from = outputs[at]!
      const to = wanted[open[at]!]!
      for (let e = 0; e < length; e++)
        if (from[e] !== to[lo + e])
          return {
            entry: lo + e,
            found: wanted.map((w, k) => (open.includes(k) ? outputs[open.indexOf(k)]![e]! : w[lo + e]!)),
          }
    }
  }
  return null
}

/** Whether a component is the wanted array itself, or joins its digits without overflow. */
function givesBack(
  input: Omit<MapInput, 'outputs' | 'strict'>,
  columns: readonly Column[],
  e: Expr,
  wanted: Int32Array,
): boolean {
  if (e.kind === 'var') return columns[input.inputs.indexOf(e.name)] === wanted
  const joined = joinedOf(e)
  if (!joined) return false
  const [h, l] = [input.inputs.indexOf(joined.high), input.inputs.indexOf(joined.low)]
  const [high, low] = [columns[h], columns[l]]
  const most =
    (input.extents?.[h] ?? MAX_POSITIONS) * Math.abs(joined.scale) + (input.extents?.[l] ?? MAX_POSITIONS)
  if (!(high instanceof Int32Array && low instanceof Int32Array) || most > MAX_POSITIONS) return false
  return firstUnjoined(joined.scale, high, low, wanted) < 0
}

/** Whether no intermediate result overflows, whatever the inputs below their extents. */
export function neverOverflows(
  input: Omit<MapInput, 'outputs' | 'strict'>,
  columns: readonly Column[],
): boolean {
  return compile({ ...input, exprs: input.map }, columns).steps.every((s) => s.fits)
}

/** `(i, j) = (3, 4)`, for messages. */
export function point(names: readonly string[], columns: readonly Column[], e: number): string {
  return `(${names.join(', ')}) = (${columns.map((c) => c[e]).join(', ')})`
}

function outOfRange(input: MapInput, columns: readonly Column[], k: number, e: number, found: number): never {
  const to = input.outputs?.[k]
  const span = input.map[k]!.span
  fail({
    code: 'format/map-range',
    message: `at ${point(input.inputs, columns, e)} ${to ? `the coordinate on ${to.name}` : `component ${k + 1} of the map`} is ${found}`,
    ...(span ? { span } : {}),
    expected:
      to && to.extent <= MAX_POSITIONS
        ? `0 to ${to.extent - 1}, the extent of ${to.name} being ${to.extent}`
        : 'a 32-bit integer',
    hint: 'correct the map, or the extent of the axis',
  })
}

function checkInterval(
  { expr, out }: Step,
  input: Pick<MapInput, 'inputs'>,
  columns: readonly Column[],
  lo: number,
  n: number,
): void {
  for (let e = 0; e < n; e++) {
    if (Math.abs(out[e]!) <= MAX_POSITIONS) continue
    fail({
      code: 'format/map-overflow',
      message: `at ${point(input.inputs, columns, lo + e)} a part of the map is ${out[e]}`,
      ...(expr.span ? { span: expr.span } : {}),
      expected: 'results that fit 32 bits, as kernels compute them',
      hint: 'divide before multiplying, or map to more axes',
    })
  }
}
