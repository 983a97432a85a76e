/**
 * Carry-out and fix-up of merge path (equal work partitions of compressed rows). A chunk writes its partial result of
 * a segment that began in an earlier chunk to a row of a carry buffer. A fix-up loop nest after all chunks adds the
 * rows of a segment to its element, in order.
 */

import { visitsAll } from '../../../analysis/dependence/full-coverage.ts'
import { linear } from '../../../analysis/integers/linear.ts'
import { type Groups, shareNumber } from '../../../analysis/loops/balanced-partition.ts'
import type { Segments } from '../../../analysis/loops/segmented-loops.ts'
import { invariant } from '../../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { add, ceildiv, div, eq, int, load, max, sub, variable } from '../../../ir/expressions/expr.ts'
import { freeVars, mentionsSome, substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { copyNest } from '../../../ir/statements/clone-loops.ts'
import { findLoop, type LoopLocation } from '../../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt, WorkPartition } from '../../../ir/statements/loops.ts'
import { combineInto } from '../../../ir/statements/reductions.ts'
import { forLoop, store, whenAll } from '../../../ir/statements/statement-builders.ts'
import type { Body } from '../../../ir/statements/tree.ts'
import { isBuiltinReducer } from '../../../ir/values/monoid.ts'
import { overParams } from '../../legality/checks.ts'
import { nestOf } from '../../legality/footprint.ts'
import type { Context } from '../../state/context.ts'

export interface CarryOut {
  /** The carry buffer, with one row for each chunk, or for each block if the chunks of a block are combined. */
  readonly buffer: Buffer
  /** Statements before the loop over a chunk: set its row of the carry buffer to the identity of the reduction. */
  readonly start: Body
  /** The loop nest that adds the carried partial results to their elements. */
  readonly fixup: Stmt
}

/**
 * Builds the carry-out of the loop `over` in the new buffer `into`. With `groups`, the chunks of a block share one
 * row. Throws `schedule/no-carry` unless the reduction is built in and has one target, and `schedule/no-shares` if
 * the chunks may be incomplete.
 */
export function carryOut(
  cx: Context,
  over: LoopLocation,
  segments: Segments,
  shares: WorkPartition & { readonly count: Expr },
  groups: Groups | undefined,
  into: string,
): CarryOut {
  const { reduce, rest, inner } = segments
  const [target] = reduce.targets
  const [dims] = rest
  const [identity] = reduce.reducer.identity
  if (reduce.targets.length > 1 || !isBuiltinReducer(reduce.reducer.name) || identity?.kind !== 'const')
    return cx.refuse('schedule/no-carry', [], {
      message: `${reduce.reducer.name} combines several elements, or by a declared monoid`,
      expected: 'a reduction by + * min max and or',
    })
  checkWhole(cx, over, shares)
  checkColumns(cx, over, segments, shares)
  const of = cx.buffer(target!.buffer)
  const row = dims!.findIndex((d) => d.part !== undefined)
  const list = cx.buffer(shares.search.buffer)
  const [offset] = dims!.filter((d) => d.part !== undefined).map((d) => d.more)
  const shifted = dims!.filter((d) => d.part !== undefined).length > 1 || keyOf(offset!) !== keyOf(int(-1))
  if (shifted || keyOf(add(of.shape[row]!, int(1))) !== keyOf(list.shape[0]!))
    return refuseShares(cx, over, `a row of ${of.name} is not a segment of ${list.name}`)
  const others = of.shape.filter((_, d) => d !== row)
  const size = groups?.loop.extent.kind === 'const' ? groups.loop.extent.value : 1
  const buffer: Buffer = Object.freeze({
    name: cx.claim(into),
    dtype: of.accumulate,
    accumulate: of.accumulate,
    scope: 'global',
    role: 'local',
    shape: [ceildiv(shares.count, int(size)), ...others],
    fill: 0,
  })
  const loops = inner.map((l) => ({ ...l, nest: buffer.name }))
  const copies = copyNest(loops, cx, new Map(), (map) => {
    const column = dims!.flatMap((d) => (d.part === undefined ? [substitute(d.more, map)] : []))
    return [store(buffer.name, [shareNumber(shares, size), ...column], { ...identity, dtype: buffer.dtype })]
  })
  const once = groups ? [eq(variable(groups.loop.var), int(0))] : []
  return {
    buffer,
    start: whenAll(once, copies),
    fixup: fixupNest(cx, segments, list, buffer, row, of.shape, shares.length * size),
  }
}

const positionOf = ({ search }: WorkPartition, over: For): Expr => add(search.value, variable(over.var))

/** Adds the rows of all chunks after the first of a segment to its element. A chunk has `length` positions. */
function fixupNest(
  cx: Context,
  { reduce }: Segments,
  list: Buffer,
  carry: Buffer,
  row: number,
  shape: readonly Expr[],
  length: number,
): Stmt {
  const [target] = reduce.targets
  const loop = (name: string, extent: Expr, more: Partial<For> = {}): For =>
    forLoop(cx.fresh(name), extent, [], { name, nest: carry.name, ...more })
  const rows = loop('row', shape[row]!)
  const own = variable(rows.var)
  const bound = (k: number): Expr => load(list.name, [add(own, int(k))])
  const first = add(div(bound(0), int(length)), int(1))
  const end = ceildiv(bound(1), int(length))
  const columns = shape.flatMap((e, d) => (d === row ? [] : [loop(columnName(d, row), e)]))
  const shares = loop('share', max(int(0), sub(end, first)), { reduce: true })
  const at = columns.map((l) => variable(l.var))
  const index = [...at.slice(0, row), own, ...at.slice(row)]
  const value = load(carry.name, [add(first, variable(shares.var)), ...at], carry.dtype)
  const element = load(target!.buffer, index, target!.dtype)
  return nestOf([rows, ...columns, shares], combineInto(reduce, [element], [value]))
}

/** Returns the name `column`, `column_2`, … of dimension `d`, counted without the row dimension. */
function columnName(d: number, row: number): string {
  const k = d < row ? d : d - 1
  return k === 0 ? 'column' : `column_${k + 1}`
}

/**
 * Checks that each position is in one iteration of the loop nest. Guards of loops that the chunk number depends on
 * may end the last iterations, but may not skip earlier positions. Throws `schedule/no-shares`.
 */
function checkWhole(cx: Context, { loop, path }: LoopLocation, shares: WorkPartition): void {
  const nest = [...path, loop]
  const top = cx.kernel.body.find((s) => findLoop([s], loop.var))
  invariant(top, 'a loop is in the kernel')
  const around = nest.find((l, k) => (k === 0 ? top !== l : !nest[k - 1]!.body.includes(l)))
  if (around) refuseShares(cx, { loop, path }, `a condition around ${around.name} decides whether it runs`)
  const single = new Set(nest.filter((l) => keyOf(l.extent) === keyOf(int(1))).map((l) => l.var))
  const moves = (e: Expr): boolean => e.kind !== 'var' || !single.has(e.name)
  const terms = [...linear(positionOf(shares, loop)).terms.values()].filter((t) => moves(t.term))
  const digits = new Set(terms.flatMap((t) => [...freeVars(t.term)]))
  const partial = nest
    .flatMap((l) => l.guards)
    .find((g) => {
      if (!mentionsSome(g, digits)) return false
      if (g.kind !== 'binary' || g.op !== 'lt' || !overParams(cx, g.b)) return true
      const own = new Map([...linear(g.a).terms].filter(([, t]) => moves(t.term)))
      const scales = terms.flatMap(({ term, coefficient }) => {
        const mine = own.get(keyOf(term))?.coefficient
        return mine === undefined ? [] : [coefficient / mine]
      })
      const scale = scales[0] ?? 0
      const higher = terms.filter((t) => t.coefficient >= scale).length
      return scales.length !== own.size || scales.some((s) => s !== scale || s < 1) || higher !== own.size
    })
  if (partial) refuseShares(cx, { loop, path }, `${printExpr(partial)} may leave out positions`)
}

/** A chunk has to visit every column of a row, because the fix-up adds all columns. */
function checkColumns(
  cx: Context,
  over: LoopLocation,
  { reduce, rest, inner }: Segments,
  shares: WorkPartition,
): void {
  const [target] = reduce.targets
  const { shape } = cx.buffer(target!.buffer)
  const digits = freeVars(positionOf(shares, over.loop))
  const nest = [...over.path, over.loop, ...inner]
  const columns = rest[0]!.flatMap((d, k) => (d.part === undefined ? [k] : []))
  const whole = visitsAll(
    columns.map((k) => target!.index[k]!),
    columns.map((k) => shape[k]!),
    nest.filter((l) => !digits.has(l.var)),
    nest.flatMap((l) => l.guards.filter((g) => !mentionsSome(g, digits))),
    cx.kernel.facts,
  )
  if (!whole) refuseShares(cx, over, `loops may leave out columns of ${target!.buffer}`)
}

/** Throws `schedule/no-shares`: the carried partial results may be incomplete, for the reason `why`. */
export function refuseShares(
  cx: Context,
  { loop, path }: Pick<LoopLocation, 'loop' | 'path'>,
  why: string,
): never {
  return cx.refuse('schedule/no-shares', [...path, loop], {
    message: `the chunks of ${loop.name} have no known common part: ${why}`,
    expected: 'a loop over equal chunks of the positions of compressed rows',
    hint: 'fuse the row with the positions, then split by the size of a chunk',
  })
}
