/** Maps and reductions over the entries of a frame, as launches. */

import { ENTRY, type Frame } from '../../../../columns/column-engine.ts'
import { type Coroutine, waitFor } from '../../../../columns/coroutines.ts'
import { unknownName } from '../../../../columns/frame-knowledge.ts'
import {
  add,
  binary,
  cast,
  constant,
  type Expr,
  int,
  load,
  max,
  select,
  sub,
  variable,
} from '../../../../ir/expressions/expr.ts'
import { freeVars, rewriteExpr, walkExpr } from '../../../../ir/expressions/expr-tree.ts'
import { structureText } from '../../../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../../../ir/print/print-stage2.ts'
import type { Dtype } from '../../../../ir/values/dtype.ts'
import { overflowOf, rejectOverflow } from '../../../columns/expression-bounds.ts'
import type { Queue } from '../queue/command-queue.ts'
import type { Cells } from '../queue/readback.ts'
import {
  type Column,
  type LaunchSpec,
  natural,
  next,
  read,
  store,
  type Use,
  write,
} from './kernel-builder.ts'
import { reduce } from './scan.ts'

type F = Frame<Column>

const LARGEST_INT = 2 ** 31 - 1

export function compute(q: Queue, frame: F, name: string, e: Expr): void {
  const t = termsOf(q, frame, [e])
  const out = q.column(frame.n, 'i32', name)
  q.launch({
    ...t,
    key: `compute ${t.key}`,
    threads: frame.n,
    columns: { ...t.columns, x_out: write(out) },
    body: (at) => [store('x_out', at, t.at(at)[0]!)],
  })
  frame.set(name, out)
}

export function* valuesAt(q: Queue, frame: F, exprs: readonly Expr[], entry: number): Coroutine<number[]> {
  const cells = q.cells(exprs.length)
  const t = termsOf(q, frame, exprs)
  q.launch({
    ...t,
    key: `at ${t.key}`,
    threads: 1,
    columns: { ...t.columns, x_totals: cells.page },
    sizes: { ...t.sizes, x_at: entry, x_cell: cells.first },
    body: () => t.at(variable('x_at')).map((x, k) => store('x_totals', add(variable('x_cell'), int(k)), x)),
  })
  return yield* numbers(q, cells)
}

/** The maximum of each of `count` non-negative values, at least 0. */
function* maximaOf(
  q: Queue,
  frame: F,
  exprs: readonly Expr[],
  key: string,
  count: number,
  values: (x: readonly Expr[], e: Expr) => readonly Expr[],
): Coroutine<number[]> {
  const t = termsOf(q, frame, exprs)
  const cells = q.cells(count)
  reduce(q, {
    ...t,
    key: `${key} ${t.key}`,
    n: frame.n,
    op: 'max',
    values: (e) => values(t.at(e), e),
    cells,
  })
  return yield* numbers(q, cells)
}

export function* largest(q: Queue, frame: F, e: Expr): Coroutine<number> {
  const [maximum = 0] = yield* maximaOf(q, frame, [e], 'largest', 1, (x) => x)
  return maximum
}

/**
 * Minimum and maximum; the range always includes 0. The least i32 has no negation, so it is encoded as the
 * negation of its successor.
 */
export function* bounds(q: Queue, frame: F, e: Expr): Coroutine<readonly [number, number]> {
  const [hi = 0, lo = 0] = yield* maximaOf(q, frame, [e], 'bounds', 2, ([x]) => [
    x!,
    sub(int(0), max(x!, int(-LARGEST_INT))),
  ])
  return [lo === LARGEST_INT ? -LARGEST_INT - 1 : lo === 0 ? 0 : -lo, hi]
}

/**
 * For each condition, the first entry of the source that satisfies it. One reduction finds the last such entry; the
 * first is searched for only if there is one.
 */
export function* findFirst(q: Queue, frame: F, conditions: readonly Expr[]): Coroutine<number[]> {
  const count = conditions.length
  const last = yield* maximaOf(q, frame, conditions, 'last', count, (x, e) =>
    x.map((c) => select(c, next(e), int(0))),
  )
  const out: number[] = []
  for (const [k, lastEntry] of last.entries())
    out.push(lastEntry > 0 ? yield* earliestEntry(q, frame, conditions[k]!) : -1)
  return out
}

function* earliestEntry(q: Queue, frame: F, condition: Expr): Coroutine<number> {
  if (frame.entry) frame.tables.set('@entries', frame.entry)
  const sourceIndex = frame.entry ? load('@entries', [variable(ENTRY)]) : variable(ENTRY)
  const complement = sub(int(LARGEST_INT), sourceIndex)
  const [maximum = 0] = yield* maximaOf(q, frame, [condition, complement], 'earliest', 1, ([c, x]) => [
    select(c!, x!, int(0)),
  ])
  if (!frame.entry) return LARGEST_INT - maximum
  const isSource = binary('eq', sourceIndex, frame.bindSize(LARGEST_INT - maximum))
  const [position = 0] = yield* maximaOf(q, frame, [isSource], 'place', 1, ([c], e) => [
    select(c!, next(e), int(0)),
  ])
  return position - 1
}

export const numbers = (q: Queue, cells: Cells): Coroutine<number[]> => waitFor(q.numbers(cells))

// Map fusion: expressions over a frame become expressions over an entry's index, so that a kernel computes its inputs itself.

/** Expressions of one frame as kernel terms, with the columns and sizes that they use. */
export interface Terms extends Required<Pick<LaunchSpec, 'key' | 'columns' | 'sizes'>> {
  readonly at: (e: Expr) => readonly Expr[]
}

/** Rejects expressions that may overflow: kernels compute in 32 bits without detecting it. */
function checkRange(frame: F, e: Expr): void {
  const over = frame.n > 0 ? overflowOf(frame, e) : undefined
  if (over) rejectOverflow(over, printExpr(over.expr))
}

/** Replaces list loads for frames without entries: compilers reject constant indices into empty arrays. */
const replaceListLoads = (frame: F, e: Expr): Expr =>
  rewriteExpr(e, (x) => (x.kind === 'load' && frame.lists.has(x.buffer) ? int(0) : undefined))

/** Translates expressions into kernel terms. @throws SptError `format/unknown-name`, `format/map-overflow` */
export function termsOf(q: Queue, frame: F, expressions: readonly Expr[]): Terms {
  const exprs = frame.n > 0 ? expressions : expressions.map((e) => replaceListLoads(frame, e))
  const columns: Record<string, Use> = {}
  const sizes: Record<string, number> = {}
  const sizeParameters = new Map<string, string>()
  const tableParameters = new Map<string, string>()
  const columnParameters = new Map<string, string>()
  const dtypes = new Map<string, Dtype>()
  for (const e of exprs) {
    checkRange(frame, e)
    for (const name of freeVars(e)) {
      if (name === ENTRY || sizeParameters.has(name) || columnParameters.has(name)) continue
      const column = frame.column(name)
      const size = frame.sizes.get(name)
      if (column) {
        const parameter = `f${columnParameters.size}`
        columnParameters.set(name, parameter)
        dtypes.set(name, column.dtype)
        columns[parameter] = frame.signed.has(name) ? read(column) : natural(column)
      } else if (size !== undefined) {
        const parameter = `s${sizeParameters.size}`
        sizeParameters.set(name, parameter)
        sizes[parameter] = size
      } else unknownName(name, [...frame.columns.keys(), ...frame.sizes.keys()])
    }
    walkExpr(e, (x) => {
      const buffer = x.kind === 'load' || x.kind === 'search' ? x.buffer : null
      if (buffer === null || tableParameters.has(buffer)) return
      const column = frame.tables.get(buffer)
      if (!column) unknownName(buffer, [...frame.tables.keys()])
      const parameter = `t${tableParameters.size}`
      tableParameters.set(buffer, parameter)
      columns[parameter] = frame.signed.has(buffer) ? read(column) : natural(column)
    })
  }
  const hasWordStorage = q.device.storage === 'words'
  const at = (e: Expr): readonly Expr[] => {
    const memo = new Map<Expr, Expr>()
    return exprs.map((x) =>
      rewriteExpr(
        x,
        (y) => {
          if (hasWordStorage && y.dtype === 'f64' && y.kind === 'const') return constant(y.value, 'f32')
          if (hasWordStorage && y.dtype === 'f64' && y.kind === 'cast') return cast(y.x, 'f32')
          if (y.kind === 'var') {
            if (y.name === ENTRY) return e
            const parameter = columnParameters.get(y.name)
            if (parameter === undefined) {
              const size = sizeParameters.get(y.name)
              return size === undefined ? undefined : variable(size)
            }
            // Types are recorded above, because the frame's columns may have changed since then.
            const dtype = dtypes.get(y.name)!
            const value = load(parameter, [e], dtype)
            return dtype === y.dtype || (hasWordStorage && y.dtype === 'f64') ? value : cast(value, y.dtype)
          }
          if (y.kind === 'load') return load(tableParameters.get(y.buffer)!, y.index, y.dtype)
          if (y.kind === 'search') return Object.freeze({ ...y, buffer: tableParameters.get(y.buffer)! })
          return undefined
        },
        memo,
      ),
    )
  }
  const parameter = (name: string): string =>
    columnParameters.get(name) ?? sizeParameters.get(name) ?? tableParameters.get(name) ?? name
  return { key: exprs.map((e) => structureOf(e, parameter)).join(), columns, sizes, at }
}

/** A key for the structure of an expression, independent of the names in it. */
const structureOf = (e: Expr, renameIn: (name: string) => string): string =>
  structureText(e, (x) => structureOf(x, renameIn), renameIn)
