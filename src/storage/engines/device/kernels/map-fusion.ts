/**
 * Map fusion: rewrites expressions over a frame into expressions over an entry's index, so that a kernel computes its
 * inputs itself.
 */

import { ENTRY, type Frame } from '../../../../columns/column-engine.ts'
import { unknownName } from '../../../../columns/frame-knowledge.ts'
import { cast, constant, type Expr, int, load, variable } from '../../../../ir/expressions/expr.ts'
import { freeVars, rewriteExpr, walkExpr } from '../../../../ir/expressions/expr-tree.ts'
import { structureText } from '../../../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../../../ir/print/print-stage2.ts'
import type { Dtype } from '../../../../ir/values/dtype.ts'
import { overflowOf, rejectOverflow } from '../../../columns/expression-bounds.ts'
import type { Queue } from '../queue/command-queue.ts'
import { type Column, type LaunchSpec, natural, read, type Use } from './kernel-builder.ts'

/** Expressions of one frame as kernel terms, with the columns and sizes that they use. */
export interface Terms extends Required<Pick<LaunchSpec, 'key' | 'columns' | 'sizes'>> {
  /** The values of the expressions at entry `e`. */
  readonly at: (e: Expr) => readonly Expr[]
}

type F = Frame<Column>

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
