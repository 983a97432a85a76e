/** Maps and reductions over the entries of a frame, as launches. */

import { type Coroutine, waitFor } from '../../../../ast/work.ts'
import { ENTRY } from '../../../../columns/column-engine.ts'
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
import type { Stmt } from '../../../../ir/statements/loops.ts'
import type { Dtype } from '../../../../ir/values/dtype.ts'
import { overflowOf, rejectOverflow } from '../../../columns/expression-bounds.ts'
import { type DeviceEngine, type F, type Queue, queueIn } from '../queue/command-queue.ts'
import type { Cells } from '../queue/readback.ts'
import type { Column, LaunchSpec, Use } from './kernel-builder.ts'
import { natural, next, read, store, write } from './kernel-builder.ts'
import { reduce } from './scan.ts'

const LARGEST_INT = 2 ** 31 - 1

export const compute: DeviceEngine['compute'] = (frame, name, e) => {
  const out = queueIn(frame).column(frame.n, 'i32', name)
  launchOver(frame, [e], 'compute', { x_out: write(out) }, (k, at) => [store('x_out', k, at(k)[0]!)])
  frame.set(name, out)
}

export const computeChecked: DeviceEngine['computeChecked'] = function* (frame, name, e, conditions) {
  const violations = conditions.length > 0 ? yield* findFirst(frame, conditions) : []
  if (violations.every((x) => x < 0)) compute(frame, name, e)
  return violations
}

export const valuesAt: DeviceEngine['valuesAt'] = (frame, exprs, entry) => {
  const q = queueIn(frame)
  const cells = q.cells(exprs.length)
  const t = termsOf(frame, exprs)
  q.launch({
    ...t,
    key: `at ${t.key}`,
    threads: 1,
    columns: { ...t.columns, x_totals: cells.page },
    sizes: { ...t.sizes, x_at: entry, x_cell: cells.first },
    body: () => t.at(variable('x_at')).map((x, k) => store('x_totals', add(variable('x_cell'), int(k)), x)),
  })
  return numbers(q, cells)
}

/** The maximum of each of `count` non-negative values, at least 0. */
function maximaOf(
  frame: F,
  exprs: readonly Expr[],
  key: string,
  count: number,
  values: (x: readonly Expr[], e: Expr) => readonly Expr[],
): Coroutine<number[]> {
  const q = queueIn(frame)
  const t = termsOf(frame, exprs)
  const cells = q.cells(count)
  const valuesOf = (e: Expr): readonly Expr[] => values(t.at(e), e)
  reduce(q, { ...t, key: `${key} ${t.key}`, n: frame.n, op: 'max', values: valuesOf, cells })
  return numbers(q, cells)
}

/** The least i32 has no negation, so it is encoded as the negation of its successor. */
export const bounds: DeviceEngine['bounds'] = function* (frame, e) {
  const [hi = 0, lo = 0] = yield* maximaOf(frame, [e], 'bounds', 2, ([x]) => [
    x!,
    sub(int(0), max(x!, int(-LARGEST_INT))),
  ])
  return [lo === LARGEST_INT ? -LARGEST_INT - 1 : lo === 0 ? 0 : -lo, hi]
}

/** One reduction finds the last entry that satisfies a condition; the first is searched for only if there is one. */
export const findFirst: DeviceEngine['findFirst'] = function* (frame, conditions) {
  const last = yield* maximaOf(frame, conditions, 'last', conditions.length, (x, e) =>
    x.map((c) => select(c, next(e), int(0))),
  )
  const out: number[] = []
  for (const [k, lastEntry] of last.entries())
    out.push(lastEntry > 0 ? yield* earliestEntry(frame, conditions[k]!) : -1)
  return out
}

function* earliestEntry(frame: F, condition: Expr): Coroutine<number> {
  if (frame.entry) frame.tables.set('@entries', frame.entry)
  const sourceIndex = frame.entry ? load('@entries', [variable(ENTRY)]) : variable(ENTRY)
  const complement = sub(int(LARGEST_INT), sourceIndex)
  const [maximum = 0] = yield* maximaOf(frame, [condition, complement], 'earliest', 1, ([c, x]) => [
    select(c!, x!, int(0)),
  ])
  if (!frame.entry) return LARGEST_INT - maximum
  const isSource = binary('eq', sourceIndex, frame.bindSize(LARGEST_INT - maximum))
  const [position = 0] = yield* maximaOf(frame, [isSource], 'place', 1, ([c], e) => [
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

/** Launches a thread for each entry; `at` gives the values of the expressions. `key` identifies `body`. */
export function launchOver(
  frame: F,
  exprs: readonly Expr[],
  key: string,
  columns: LaunchSpec['columns'],
  body: (e: Expr, at: Terms['at']) => readonly Stmt[],
  sizes: LaunchSpec['sizes'] = {},
): void {
  const t = termsOf(frame, exprs)
  queueIn(frame).launch({
    key: `${key} ${t.key}`,
    threads: frame.n,
    columns: { ...t.columns, ...columns },
    sizes: { ...t.sizes, ...sizes },
    body: (e) => body(e, t.at),
  })
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
export function termsOf(frame: F, expressions: readonly Expr[]): Terms {
  const exprs = frame.n > 0 ? expressions : expressions.map((e) => replaceListLoads(frame, e))
  const columns: Record<string, Use> = {}
  const sizes: Record<string, number> = {}
  const names = new Map<string, string>()
  const tables = new Map<string, string>()
  // Recorded, because the frame's columns may change before the kernel is built.
  const dtypes = new Map<string, Dtype>()
  const use = (name: string, column: Column): Use => (frame.signed.has(name) ? read(column) : natural(column))
  for (const e of exprs) {
    checkRange(frame, e)
    for (const name of freeVars(e)) {
      if (name === ENTRY || names.has(name)) continue
      const column = frame.column(name)
      const size = frame.sizes.get(name)
      const parameter = column ? `f${dtypes.size}` : `s${names.size - dtypes.size}`
      if (column) {
        dtypes.set(name, column.dtype)
        columns[parameter] = use(name, column)
      } else if (size !== undefined) sizes[parameter] = size
      else unknownName(name, [...frame.columns.keys(), ...frame.sizes.keys()])
      names.set(name, parameter)
    }
    walkExpr(e, (x) => {
      const buffer = x.kind === 'load' || x.kind === 'search' ? x.buffer : null
      if (buffer === null || tables.has(buffer)) return
      const column = frame.tables.get(buffer) ?? unknownName(buffer, [...frame.tables.keys()])
      columns[`t${tables.size}`] = use(buffer, column)
      tables.set(buffer, `t${tables.size}`)
    })
  }
  const hasWords = queueIn(frame).device.storage === 'words'
  const inKernel = (x: Expr, e: Expr): Expr | undefined => {
    const isWide = hasWords && x.dtype === 'f64'
    if (isWide && x.kind === 'const') return constant(x.value, 'f32')
    if (isWide && x.kind === 'cast') return cast(x.x, 'f32')
    if (x.kind === 'load') return load(tables.get(x.buffer)!, x.index, x.dtype)
    if (x.kind === 'search') return Object.freeze({ ...x, buffer: tables.get(x.buffer)! })
    if (x.kind !== 'var') return undefined
    const [parameter, dtype] = [names.get(x.name), dtypes.get(x.name)]
    if (parameter === undefined) return e
    if (dtype === undefined) return variable(parameter)
    const value = load(parameter, [e], dtype)
    return dtype === x.dtype || isWide ? value : cast(value, x.dtype)
  }
  const at = (e: Expr): readonly Expr[] => {
    const memo = new Map<Expr, Expr>()
    return exprs.map((x) => rewriteExpr(x, (y) => inKernel(y, e), memo))
  }
  const parameter = (name: string): string => names.get(name) ?? tables.get(name) ?? name
  return { key: exprs.map((e) => structureOf(e, parameter)).join(), columns, sizes, at }
}

/** A key for the structure of an expression, independent of the names in it. */
const structureOf = (e: Expr, renameIn: (name: string) => string): string =>
  structureText(e, (x) => structureOf(x, renameIn), renameIn)
