/** The way back from stored coordinates to those of the tensor: expressions, the tables they load, and trying them. */
import { fail, invariant } from '../../../ast/diagnostic.ts'
import { evaluate } from '../../../ir/evaluate.ts'
import { all, binary, type Expr, ge, int, lt, select, variable } from '../../../ir/expr.ts'
import { rewriteExpr, substitute } from '../../../ir/expr-tree.ts'
import type { FormatInstance, PartInstance } from '../../../ir/format.ts'
import type { Column } from './column-types.ts'
import { pointOf } from './coordinate-point.ts'
import type { Frame } from './frame.ts'
import { next } from './kernel.ts'
import { reduce } from './scan.ts'

/** How stored coordinates go back to those of the tensor. */
export interface Inverse {
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** Over the names of the axes; one for each dimension. */
  readonly exprs: readonly Expr[]
  readonly sizes: ReadonlyMap<string, number>
  readonly tables: ReadonlyMap<string, { readonly column: Column; readonly fill: number }>
}

/** A load that reads `fill` outside of its table. */
export function guarded(e: Expr, tables: Inverse['tables']): Expr {
  return rewriteExpr(e, (x) => {
    const table = x.kind === 'load' ? tables.get(x.buffer) : undefined
    const at = x.kind === 'load' ? x.index[0] : undefined
    if (!table || !at) return undefined
    return select(all([ge(at, int(0)), lt(at, variable(`@length ${nameOf(x)}`))]), x, int(table.fill))
  })
}

const nameOf = (x: Expr): string => (x.kind === 'load' ? x.buffer : '')

/** Puts tables and their lengths where expressions of a frame find them. */
export function bindTables(frame: Frame, tables: Inverse['tables']): void {
  for (const [name, { column }] of tables) {
    frame.tables.set(name, column)
    frame.sizes.set(`@length ${name}`, column.length)
  }
}

/** Tables as inverses load them, with what lies outside. */
export function inverseTables(
  instance: FormatInstance,
  tables: ReadonlyMap<string, Column>,
  frame: Pick<Frame, 'sizes'>,
): Inverse['tables'] {
  return new Map(
    instance.tables.map(({ name, fill }) => {
      const column = tables.get(name)
      invariant(column, `nothing gives the table ${name}`)
      return [name, { column, fill: evaluate(fill, frame.sizes) }]
    }),
  )
}

/** Tries the map and its inverse on every entry. */
export async function checkMap(
  frame: Frame,
  { label, instance }: PartInstance,
  dims: readonly { readonly name: string }[],
  tables: Inverse['tables'],
): Promise<void> {
  const { queue: q } = frame
  const mapped = new Map(instance.order.map((name, k) => [name, instance.map[k]!]))
  const range: Expr[] = []
  for (const [name, e] of mapped) {
    const axis = instance.axes.find((a) => a.name === name)
    range.push(binary('lt', e, int(0)))
    if (!axis || !frame.isKnown(axis.extent)) continue
    frame.sizes.set(`@extent ${name}`, frame.size(axis.extent))
    range.push(ge(e, variable(`@extent ${name}`)))
  }
  const back = instance.inverse.map((e) => guarded(substitute(e, mapped), tables))
  const differs = back.map((e, k) => binary('ne', e, variable(dims[k]!.name)))
  const t = frame.terms([...range, ...differs])
  const cells = q.cells(2)
  const any = (conditions: readonly Expr[], e: Expr): Expr =>
    select(
      conditions.reduce((a, b) => binary('or', a, b)),
      next(e),
      int(0),
    )
  reduce(q, {
    ...t,
    key: `check ${range.length} ${t.key}`,
    n: frame.n,
    op: 'max',
    values: (e) => [any(t.at(e).slice(0, range.length), e), any(t.at(e).slice(range.length), e)],
    count: 2,
    cells,
  })
  const [outside = 0, wrong = 0] = await q.numbers([cells, cells + 1])
  const where = label === '' ? '' : ` in part ${label}`
  const names = dims.map((d) => d.name)
  if (outside > 0)
    fail({
      code: 'format/map-range',
      message: `the map of ${instance.text} leaves the extents of its axes${where}: ${await pointOf(frame, names, outside - 1)}`,
      expected: 'coordinates from 0 to the extent of each axis',
      hint: 'correct the extents, or what the part selects',
    })
  if (wrong > 0)
    fail({
      code: 'format/not-inverse',
      message: `the inverse of ${instance.text} does not undo its map${where}: ${await pointOf(frame, names, wrong - 1)}`,
      expected: 'the coordinate it came from',
      hint: 'the map must keep different coordinates apart, and the inverse must name the old ones in order',
    })
}
