/**
 * Expressions over whole columns: a list is compiled to a program of steps over chunks that fit the first-level cache.
 * It needs no code generation, so it runs under strict content security policies. Integers are exact to 2^53, reals are
 * float64; integer division rounds down and x / 0 is 0, as in kernels.
 */

import { type Interval, interval, intervalOf } from '../analysis/integers/interval.ts'
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { children } from '../ir/expressions/expr-tree.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import type { TypedArray } from '../ir/values/arrays.ts'
import { isFloat } from '../ir/values/dtype.ts'
import { MATH } from '../ir/values/math.ts'
import { type Chunk, isFlag, KERNELS, REAL, thresholdsOf } from './expression-kernels.ts'

export const CHUNK = 512

/** One value for each entry. */
export type Column = Int32Array | Float64Array

/** A one-dimensional array that expressions load; out-of-range loads read `fill`. */
export interface MapTable {
  readonly values: TypedArray
  readonly fill: number
}

/** The meaning of names in expressions. */
export interface Names {
  readonly column: (name: string) => Column | undefined
  readonly size: (name: string) => number | undefined
  readonly table: (name: string) => MapTable | undefined
  /** Minimum and maximum of a column or size, if known. */
  readonly range: (name: string) => readonly [number, number] | undefined
  /** The name of the entry's index. */
  readonly entry?: string
  readonly all: () => { readonly variables: readonly string[]; readonly tables: readonly string[] }
}

export interface Step {
  readonly expr: Expr
  readonly out: Chunk
  /** Computes entries `lo … lo + n - 1` into the first n elements of `out`. */
  readonly run: (lo: number, n: number) => void
  /** The result fits an i32 for all inputs. */
  readonly fits: boolean
}

export interface Program {
  readonly steps: readonly Step[]
  readonly outputs: readonly Chunk[]
}

/** Compiles expressions into a program. @throws SptError `format/map-expression`, `format/unknown-name` */
export function compile(exprs: readonly Expr[], names: Names): Program {
  const steps: Step[] = []
  const results = new Map<string, { out: Chunk; range: Interval }>()
  const visit = (e: Expr): { out: Chunk; range: Interval } => {
    const key = keyOf(e)
    const cached = results.get(key)
    if (cached) return cached
    const equivalent = equivalentExpr(e)
    if (equivalent) {
      const result = visit(equivalent)
      results.set(key, result)
      return result
    }
    const out = new Float64Array(CHUNK)
    const classes = thresholdsOf(e)
    if (classes) {
      const range = interval(0, classes.below.length)
      const result = { out, range }
      results.set(key, result)
      steps.push({ expr: e, out, run: classify(out, visit(classes.compared).out, classes.below), fits: true })
      return result
    }
    const operands = children(e).map(visit)
    const range = intervalOf(
      e,
      operands.map((x) => x.range),
      names.range,
    )
    const run = stepOf(
      e,
      out,
      operands.map((x) => x.out),
      names,
    )
    const result = { out, range }
    results.set(key, result)
    if (run) steps.push({ expr: e, out, run, fits: range.fits })
    return result
  }
  return { outputs: exprs.map((e) => visit(e).out), steps }
}

/** A subexpression with the same numbers: the operand of a cast without rounding, or a condition selected as 1 or 0. */
function equivalentExpr(e: Expr): Expr | null {
  if (e.kind === 'cast' && keepsValue(e.x, e.dtype)) return e.x
  return e.kind === 'select' && isFlag(e) ? e.cond : null
}

const keepsValue = (x: Expr, to: Expr['dtype']): boolean =>
  to !== 'bool' && (isFloat(to) || !isFloat(x.dtype))

/** The step of a node; `null` if the chunk holds its constant already. */
function stepOf(e: Expr, out: Chunk, [a, b, c]: readonly Chunk[], names: Names): Step['run'] | null {
  switch (e.kind) {
    case 'const':
      out.fill(e.value)
      return null
    case 'var': {
      if (e.name === names.entry) return count(out)
      const column = names.column(e.name)
      if (column) return copy(out, column)
      out.fill(names.size(e.name) ?? unknownVariable(names, e.name))
      return null
    }
    case 'unary':
      return e.op === 'neg' ? mapEach(out, a!, (x) => 0 - x) : mapEach(out, a!, (x) => (x === 0 ? 1 : 0))
    case 'cast':
      if (e.dtype === 'bool') return mapEach(out, a!, (x) => (x !== 0 ? 1 : 0))
      return mapEach(out, a!, Math.trunc)
    case 'binary': {
      const divisor = isFloat(e.dtype) ? 0 : divisorOf(e.b, names)
      if (divisor > 0 && e.op === 'div') return divide(out, a!, divisor)
      if (divisor > 0 && e.op === 'mod') return remainder(out, a!, divisor)
      const kernel = (isFloat(e.dtype) && REAL[e.op]) || KERNELS[e.op]
      return (_, n) => kernel(out, a!, b!, n)
    }
    case 'select':
      return (_, n) => {
        for (let k = 0; k < n; k++) out[k] = a![k] !== 0 ? b![k]! : c![k]!
      }
    case 'call': {
      const { reproducible, evaluate, arity } = MATH[e.fn]
      if (!reproducible) return unsupported(e)
      if (arity === 1) return mapEach(out, a!, (x) => evaluate(x, 0))
      return (_, n) => {
        for (let k = 0; k < n; k++) out[k] = evaluate(a![k]!, b![k]!)
      }
    }
    case 'load': {
      const table = names.table(e.buffer)
      if (!table || e.index.length !== 1) return unknownTable(names, e)
      return lookUpTable(out, a!, table)
    }
    case 'search': {
      const table = names.table(e.buffer)
      if (!table) return unknownTable(names, e)
      return searchTable(out, [a!, b!, c!], table.values, e.method === 'lower')
    }
    default:
      return unsupported(e)
  }
}

const count =
  (out: Chunk): Step['run'] =>
  (lo, n) => {
    for (let k = 0; k < n; k++) out[k] = lo + k
  }

function copy(out: Chunk, from: Column): Step['run'] {
  if (from instanceof Int32Array)
    return (lo, n) => {
      for (let k = 0; k < n; k++) out[k] = from[lo + k]!
    }
  return (lo, n) => {
    for (let k = 0; k < n; k++) out[k] = from[lo + k]!
  }
}

function mapEach(out: Chunk, x: Chunk, f: (x: number) => number): Step['run'] {
  return (_, n) => {
    for (let k = 0; k < n; k++) out[k] = f(x[k]!)
  }
}

/** Floor division. Below 2^31 the quotient of two integers is never rounded up to the next one. */
function divide(out: Chunk, x: Chunk, divisor: number): Step['run'] {
  const inverse = 1 / divisor
  // The inverse of a power of two is exact.
  if ((divisor & (divisor - 1)) === 0)
    return (_, n) => {
      for (let k = 0; k < n; k++) out[k] = Math.floor(x[k]! * inverse)
    }
  return (_, n) => {
    for (let k = 0; k < n; k++) out[k] = Math.floor(x[k]! / divisor)
  }
}

function remainder(out: Chunk, x: Chunk, divisor: number): Step['run'] {
  return (_, n) => {
    for (let k = 0; k < n; k++) out[k] = x[k]! - divisor * Math.floor(x[k]! / divisor)
  }
}

function classify(out: Chunk, x: Chunk, below: Float64Array): Step['run'] {
  const top = below.length - 1
  return (_, n) => {
    for (let k = 0; k < n; k++) {
      const index = x[k]!
      out[k] = index <= 0 ? 0 : below[index < top ? index : top]!
    }
  }
}

function lookUpTable(out: Chunk, x: Chunk, { values, fill }: MapTable): Step['run'] {
  return (_, n) => {
    for (let k = 0; k < n; k++) {
      const index = x[k]!
      out[k] = index >= 0 && index < values.length ? values[index]! : fill
    }
  }
}

/** The first index in an ascending segment whose element is at least the value (`lower`), or greater. */
function searchTable(
  out: Chunk,
  [lo, hi, x]: readonly [Chunk, Chunk, Chunk],
  values: TypedArray,
  lower: boolean,
): Step['run'] {
  let last = 0
  return (_, n) => {
    for (let k = 0; k < n; k++) {
      let a = lo[k]!
      let b = hi[k]!
      const v = x[k]!
      const precedes = (q: number): boolean => (lower ? values[q]! < v : values[q]! <= v)
      // Consecutive entries often have the same index.
      if (last >= a && last <= b && (last === a || precedes(last - 1)) && (last === b || !precedes(last))) {
        out[k] = last
        continue
      }
      while (a < b) {
        const middle = Math.floor((a + b) / 2)
        if (precedes(middle)) a = middle + 1
        else b = middle
      }
      out[k] = a
      last = a
    }
  }
}

function divisorOf(e: Expr, names: Names): number {
  if (e.kind === 'const') return e.value
  return e.kind === 'var' && !names.column(e.name) ? (names.size(e.name) ?? 0) : 0
}

function unknownVariable(names: Names, name: string): never {
  return failWith('format/unknown-name', `no coordinate and no size is called ${name}`, {
    lookup: { name, candidates: names.all().variables },
    expected: 'a coordinate of the map, or a bound size',
    hint: 'bind the size, or name a coordinate',
  })
}

function unknownTable(names: Names, e: Extract<Expr, { kind: 'load' | 'search' }>): never {
  failWith('format/unknown-name', `no list and no sort gives ${e.buffer}`, {
    ...(e.span && { span: e.span }),
    lookup: { name: e.buffer, candidates: names.all().tables },
    expected: 'a list of the format or a table of a sort, with one index',
    hint: 'bind the list',
  })
}

function unsupported(e: Expr): never {
  failWith(
    'format/map-expression',
    `a coordinate map cannot hold ${e.kind === 'call' ? `${e.fn}(…)` : `a ${e.kind}`}`,
    {
      ...(e.span && { span: e.span }),
      expected: 'arithmetic (+ - * / % min max abs, select) over coordinates, sizes, queries and lists',
      hint: 'reorder coordinates through a gathered axis instead',
    },
  )
}
