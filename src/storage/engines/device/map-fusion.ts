/**
 * Map fusion: rewrites expressions over a frame into expressions over an entry's index, so that a kernel computes its
 * inputs itself.
 */
import type { Dtype } from '../../../ir/dtype.ts'
import { cast, constant, type Expr, int, load, variable } from '../../../ir/expr.ts'
import { freeVars, rewriteExpr, walkExpr } from '../../../ir/expr-tree.ts'
import { printExpr } from '../../../ir/print-stage2.ts'
import { structureText } from '../../../ir/structural-equality.ts'
import { ENTRY, type Frame } from '../../column-engine.ts'
import { overflowOf, refuseOverflow } from '../../expression-bounds.ts'
import { unknownName } from '../../unknown-name.ts'
import { type Column, type LaunchSpec, natural, read, type Use } from './column-types.ts'
import type { Queue } from './command-queue.ts'

/** Expressions of one frame as kernel terms, with the columns and sizes that they use. */
export interface Terms extends Required<Pick<LaunchSpec, 'key' | 'columns' | 'sizes'>> {
  /** Their values at entry `e`. */
  readonly at: (e: Expr) => readonly Expr[]
}

type F = Frame<Column>

/** Rejects expressions that may overflow: kernels compute in 32 bits without detecting it. */
function checkRange(frame: F, e: Expr): void {
  const over = frame.n > 0 ? overflowOf(frame, e) : undefined
  if (over) refuseOverflow(over, printExpr(over.expr))
}

/** Replaces list loads for frames without entries: compilers reject constant indices into empty arrays. */
const withoutLists = (frame: F, e: Expr): Expr =>
  rewriteExpr(e, (x) => (x.kind === 'load' && frame.lists.has(x.buffer) ? int(0) : undefined))

/** Translates expressions into kernel terms. @throws SptError `format/unknown-name`, `format/map-overflow` */
export function termsOf(q: Queue, frame: F, asked: readonly Expr[]): Terms {
  const exprs = frame.n > 0 ? asked : asked.map((e) => withoutLists(frame, e))
  const columns: Record<string, Use> = {}
  const sizes: Record<string, number> = {}
  const names = new Map<string, string>()
  const tables = new Map<string, string>()
  const onColumn = new Map<string, string>()
  const dtypes = new Map<string, Dtype>()
  for (const e of exprs) {
    checkRange(frame, e)
    for (const name of freeVars(e)) {
      if (name === ENTRY || names.has(name) || onColumn.has(name)) continue
      const column = frame.column(name)
      const size = frame.sizes.get(name)
      if (column) {
        const own = `f${onColumn.size}`
        onColumn.set(name, own)
        dtypes.set(name, column.dtype)
        columns[own] = frame.signed.has(name) ? read(column) : natural(column)
      } else if (size !== undefined) {
        const own = `s${names.size}`
        names.set(name, own)
        sizes[own] = size
      } else unknownName(name, [...frame.columns.keys(), ...frame.sizes.keys()])
    }
    walkExpr(e, (x) => {
      const buffer = x.kind === 'load' || x.kind === 'search' ? x.buffer : null
      if (buffer === null || tables.has(buffer)) return
      const column = frame.tables.get(buffer)
      if (!column) unknownName(buffer, [...frame.tables.keys()])
      const own = `t${tables.size}`
      tables.set(buffer, own)
      columns[own] = frame.signed.has(buffer) ? read(column) : natural(column)
    })
  }
  const narrow = q.device.storage === 'words'
  const at = (e: Expr): readonly Expr[] => {
    const memo = new Map<Expr, Expr>()
    return exprs.map((x) =>
      rewriteExpr(
        x,
        (y) => {
          if (narrow && y.dtype === 'f64' && y.kind === 'const') return constant(y.value, 'f32')
          if (narrow && y.dtype === 'f64' && y.kind === 'cast') return cast(y.x, 'f32')
          if (y.kind === 'var') {
            if (y.name === ENTRY) return e
            const own = onColumn.get(y.name)
            if (own === undefined) {
              const size = names.get(y.name)
              return size === undefined ? undefined : variable(size)
            }
            // The frame's columns may have changed since.
            const dtype = dtypes.get(y.name)!
            const value = load(own, [e], dtype)
            return dtype === y.dtype || (narrow && y.dtype === 'f64') ? value : cast(value, y.dtype)
          }
          if (y.kind === 'load') return load(tables.get(y.buffer)!, y.index, y.dtype)
          if (y.kind === 'search') return Object.freeze({ ...y, buffer: tables.get(y.buffer)! })
          return undefined
        },
        memo,
      ),
    )
  }
  const own = (name: string): string => onColumn.get(name) ?? names.get(name) ?? tables.get(name) ?? name
  return { key: exprs.map((e) => structureOf(e, own)).join(), columns, sizes, at }
}

/** A key for the structure of an expression, independent of the names in it. */
const structureOf = (e: Expr, own: (name: string) => string): string =>
  structureText(e, (x) => structureOf(x, own), own)
