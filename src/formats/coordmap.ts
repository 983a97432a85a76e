/**
 * Coordinate maps over whole coordinate arrays. A list of integer expressions is compiled to a program of steps
 * over chunks that stay in cache: no code generation, so it runs where a page's policy forbids it. Arithmetic
 * is exact to 2^53; division rounds down and x / 0 is 0, as in kernels.
 */
import { fail } from '../ast/diagnostic.ts'
import { type BinaryOp, type Expr, keyOf } from '../ir/expr.ts'
import { allocate, MAX_POSITIONS } from './storage.ts'

const CHUNK = 2048

type Chunk = Float64Array
type Kernel = (out: Chunk, a: Chunk, b: Chunk, n: number) => void

/** One component of a map: the axis it is the coordinate of, and that axis' extent. */
export interface Component {
  readonly name: string
  readonly extent: number
}

export interface MapInput {
  readonly map: readonly Expr[]
  /** The variables of `map` that are coordinates, in the order of the coordinate arrays. */
  readonly inputs: readonly string[]
  /** The other variables: sizes and parameters. */
  readonly sizes?: ReadonlyMap<string, number> | undefined
  /** Checks the results against these extents; they must fit an i32 in any case. */
  readonly outputs?: readonly Component[] | undefined
  /** Also checks that every intermediate result fits an i32, as kernels compute them. */
  readonly strict?: boolean | undefined
}

/**
 * `result[k][e]` is `map[k]` at `(coords[0][e], coords[1][e], …)`. O(entries × operations).
 * @throws SptError `format/map-range`, `format/map-overflow`, `format/map-expression`, `format/unknown-name`
 */
export function applyMap(input: MapInput, coords: readonly Int32Array[]): Int32Array[] {
  const n = coords[0]?.length ?? 0
  const program = compile(input, coords)
  const results = input.map.map(() => allocate(n, 'mapped coordinates'))
  for (let lo = 0; lo < n; lo += CHUNK) {
    const length = Math.min(CHUNK, n - lo)
    for (const step of program.steps) {
      step.run(lo, length)
      if (input.strict) checkInterval(step, input, coords, lo, length)
    }
    for (let k = 0; k < results.length; k++) {
      const from = program.outputs[k]!
      const to = results[k]!
      const top = input.outputs ? input.outputs[k]!.extent - 1 : MAX_POSITIONS
      const bottom = input.outputs ? 0 : -MAX_POSITIONS - 1
      for (let e = 0; e < length; e++) {
        const v = from[e]!
        if (!(v >= bottom && v <= top)) outOfRange(input, coords, k, lo + e, v)
        to[lo + e] = v
      }
    }
  }
  return results
}

interface Step {
  readonly expr: Expr
  readonly out: Chunk
  readonly run: (lo: number, n: number) => void
}

function compile(input: MapInput, coords: readonly Int32Array[]) {
  const steps: Step[] = []
  const done = new Map<string, Chunk>()
  const visit = (e: Expr): Chunk => {
    const key = keyOf(e)
    const known = done.get(key)
    if (known) return known
    const out = new Float64Array(CHUNK)
    done.set(key, out)
    const step = (run: Step['run']): void => void steps.push({ expr: e, out, run })
    switch (e.kind) {
      case 'const':
        out.fill(e.value)
        break
      case 'var': {
        const column = input.inputs.indexOf(e.name)
        if (column >= 0) {
          const from = coords[column]!
          step((lo, n) => {
            for (let k = 0; k < n; k++) out[k] = from[lo + k]!
          })
        } else out.fill(sizeOf(input, e.name))
        break
      }
      case 'unary': {
        const x = visit(e.x)
        const negative = e.op === 'neg'
        step((_, n) => {
          for (let k = 0; k < n; k++) out[k] = negative ? 0 - x[k]! : x[k] === 0 ? 1 : 0
        })
        break
      }
      case 'binary': {
        const a = visit(e.a)
        const b = visit(e.b)
        const kernel = KERNELS[e.op]
        step((_, n) => kernel(out, a, b, n))
        break
      }
      case 'select': {
        const c = visit(e.cond)
        const t = visit(e.then)
        const f = visit(e.else)
        step((_, n) => {
          for (let k = 0; k < n; k++) out[k] = c[k] !== 0 ? t[k]! : f[k]!
        })
        break
      }
      default:
        unsupported(e)
    }
    return out
  }
  return { outputs: input.map.map(visit), steps }
}

const loop =
  (f: (a: number, b: number) => number): Kernel =>
  (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = f(a[k]!, b[k]!)
  }

/** The four that maps are made of are written out: one call site each, so that they run at memory speed. */
const KERNELS: Readonly<Record<BinaryOp, Kernel>> = {
  add: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! + b[k]!
  },
  mul: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! * b[k]!
  },
  div: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = b[k] === 0 ? 0 : Math.floor(a[k]! / b[k]!)
  },
  mod: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = b[k] === 0 ? 0 : a[k]! - b[k]! * Math.floor(a[k]! / b[k]!)
  },
  sub: loop((a, b) => a - b),
  quo: loop((a, b) => (b === 0 ? 0 : Math.trunc(a / b))),
  rem: loop((a, b) => (b === 0 ? 0 : a - b * Math.trunc(a / b))),
  min: loop(Math.min),
  max: loop(Math.max),
  and: loop((a, b) => (a !== 0 && b !== 0 ? 1 : 0)),
  or: loop((a, b) => (a !== 0 || b !== 0 ? 1 : 0)),
  lt: loop((a, b) => (a < b ? 1 : 0)),
  le: loop((a, b) => (a <= b ? 1 : 0)),
  gt: loop((a, b) => (a > b ? 1 : 0)),
  ge: loop((a, b) => (a >= b ? 1 : 0)),
  eq: loop((a, b) => (a === b ? 1 : 0)),
  ne: loop((a, b) => (a !== b ? 1 : 0)),
}

function sizeOf(input: MapInput, name: string): number {
  const v = input.sizes?.get(name)
  if (v === undefined)
    fail({
      code: 'format/unknown-name',
      message: `no coordinate and no size is called ${name}`,
      lookup: { name, candidates: [...input.inputs, ...(input.sizes?.keys() ?? [])] },
      expected: 'a coordinate of the map, or a bound size',
      hint: 'bind the size, or name one of the coordinates',
    })
  return v
}

function unsupported(e: Expr): never {
  fail({
    code: 'format/map-expression',
    message: `a coordinate map cannot hold ${e.kind === 'call' ? `${e.fn}(…)` : `a ${e.kind}`}`,
    ...(e.span ? { span: e.span } : {}),
    expected: 'integer arithmetic (+ - * / % min max, select) over coordinates and sizes',
    hint: 'reorder coordinates through a gathered axis instead',
  })
}

/** `(i, j) = (3, 4)`, for messages. */
export function point(names: readonly string[], coords: readonly Int32Array[], e: number): string {
  return `(${names.join(', ')}) = (${coords.map((c) => c[e]).join(', ')})`
}

function outOfRange(
  input: MapInput,
  coords: readonly Int32Array[],
  k: number,
  e: number,
  found: number,
): never {
  const to = input.outputs?.[k]
  const span = input.map[k]!.span
  fail({
    code: 'format/map-range',
    message: `at ${point(input.inputs, coords, e)} ${to ? `the coordinate on ${to.name}` : `component ${k + 1} of the map`} is ${found}`,
    ...(span ? { span } : {}),
    expected: to ? `0 to ${to.extent - 1}, the extent of ${to.name} being ${to.extent}` : 'a 32-bit integer',
    hint: 'correct the map, or the extent of the axis',
  })
}

function checkInterval(
  { expr, out }: Step,
  input: MapInput,
  coords: readonly Int32Array[],
  lo: number,
  n: number,
): void {
  for (let e = 0; e < n; e++) {
    if (Math.abs(out[e]!) <= MAX_POSITIONS) continue
    fail({
      code: 'format/map-overflow',
      message: `at ${point(input.inputs, coords, lo + e)} a part of the map is ${out[e]}`,
      ...(expr.span ? { span: expr.span } : {}),
      expected: 'results that fit 32 bits, as kernels compute them',
      hint: 'divide before multiplying, or map to more axes',
    })
  }
}
