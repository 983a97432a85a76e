/** Sampling follows a format: along its outermost dimension, so that samples are complete, in its order of rows. */

import { runSync } from '../../ast/work.ts'
import { withScratchPool } from '../../columns/allocate.ts'
import type { Kernel1, Reformat } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { walkExpr } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance, Sort } from '../../ir/formats/format.ts'
import { operandsOf } from '../../ir/formats/queries.ts'
import { allAxesOf, callerTensor } from '../../run/bind/bind-plan.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import { evaluateSort } from '../../storage/columns/sort-permutations.ts'
import { dependsOnValues, loadEntries } from '../../storage/convert.ts'
import { HOST } from '../../storage/engines/host/engine.ts'
import type { Rows } from './statistics.ts'

/** 0: rows, 1: columns. */
export type Dimension = 0 | 1

/** Name of the size parameter that is the extent of a tensor's dimension. */
export function sizeNameOf(kernel: Kernel1, tensor: string, dimension: Dimension): string | undefined {
  const name = axesOfBinding(kernel, tensor)[dimension]
  const axis = name === undefined ? undefined : allAxesOf(kernel).get(name)
  return axis && 'extent' in axis && axis.extent.kind === 'var' ? axis.extent.name : undefined
}

/** 1 (columns) if all parts of the format have columns, or groups of them, outside of rows. */
export function outerDimension(kernel: Kernel1, tensor: string): Dimension {
  const [rows, columns] = [sizeNameOf(kernel, tensor, 0), sizeNameOf(kernel, tensor, 1)]
  if (columns === undefined || rows === columns) return 0
  const dimensionNames = axesOfBinding(kernel, tensor)
  const isByColumns = (axes: readonly string[]): boolean => {
    for (const name of axes) {
      const dimensions = dimensionsOf(kernel, dimensionNames, name, true)
      if (dimensions && dimensions.size > 0) return dimensions.has(1) && !dimensions.has(0)
    }
    return false
  }
  return (callerTensor(kernel, tensor)?.buffers ?? []).every((b) => isByColumns(b.axes)) ? 1 : 0
}

/** Axes whose coordinate is only an ordinal, such as pieces of a row; the longest row has all of them. */
export function ordinalAxes(kernel: Kernel1, tensor: string): ReadonlySet<string> {
  const dimensionNames = axesOfBinding(kernel, tensor)
  const axes = new Set<string>()
  for (const b of callerTensor(kernel, tensor)?.buffers ?? [])
    for (const axis of b.axes) {
      if (dimensionsOf(kernel, dimensionNames, axis, false)?.size !== 0) break
      axes.add(axis)
    }
  return axes
}

/** Dimensions on which a coordinate depends; empty for an ordinal, `null` for an unknown axis. */
function dimensionsOf(
  kernel: Kernel1,
  dimensionNames: readonly string[],
  axis: string,
  throughQueries: boolean,
): ReadonlySet<number> | null {
  const index = dimensionNames.indexOf(axis)
  if (index >= 0) return new Set([index])
  for (const { instance } of kernel.reformats.flatMap((r) => r.instance.parts)) {
    const coordinate = coordinateOf(instance, axis)
    if (!coordinate) continue
    const names = [...variablesOf(coordinate, instance, throughQueries)]
    return new Set(names.flatMap((v) => [...(dimensionsOf(kernel, dimensionNames, v, throughQueries) ?? [])]))
  }
  return null
}

const coordinateOf = ({ order, map, lists }: FormatInstance, axis: string): Expr | undefined =>
  map[order.indexOf(axis)] ?? lists.find((l) => l.axis.name === axis)?.coordinate

/** Variables of an expression and of its queries. Queries with `by` are evaluated within their group. */
function variablesOf(e: Expr, instance: FormatInstance, throughQueries: boolean): ReadonlySet<string> {
  const variables = new Set<string>()
  const groupOf = (name: string): readonly Expr[] => {
    const query = instance.queries.find((x) => x.name === name)
    if (!query) return []
    const keys = 'by' in query ? query.by : []
    if (keys.length === 0) return operandsOf(query)
    return throughQueries ? keys : []
  }
  walkExpr(e, (x) => {
    if (x.kind !== 'var') return
    variables.add(x.name)
    for (const operand of groupOf(x.name))
      for (const v of variablesOf(operand, instance, throughQueries)) variables.add(v)
  })
  return variables
}

// Sampling for formats that sort rows. Sorting brings distant rows together, so samples are windows of rows that are adjacent after the sort.

export interface RowOrder {
  /** Equal for the same order of the same rows. */
  readonly key: string
  readonly permute: (rows: Rows) => Int32Array
}

/** Maximum number of elements that are sorted (10 ns each) for a sample; others use the stored order. */
const MAX_SORTED = 1 << 22

/**
 * Row order produced by a tensor's format, if it sorts all coordinates of a dimension by criteria independent of the values;
 * otherwise `null`. If parts sort their own rows, the criterion of the first is applied to all: a row is mostly in one part,
 * and parts sort by similar criteria.
 */
export function rowOrderOf(
  kernel: Kernel1,
  tensor: string,
  along: Dimension,
  sizes: ReadonlyMap<string, number>,
): RowOrder | null {
  const axes = axesOfBinding(kernel, tensor)
  const reformat = kernel.reformats.find((r) => r.from.map((a) => a.name).join() === axes.join())
  const sort = reformat && sortAlong(reformat, along)
  if (!reformat || !sort) return null
  return {
    key: JSON.stringify([sort.key, sort.queries], (name, value) => (name === 'span' ? undefined : value)),
    permute: (rows) => evaluateOrder(reformat, sort, along, rows, sizes),
  }
}

function sortAlong({ instance }: Reformat, along: Dimension): Sort | null {
  if (instance.given.length > 0 || dependsOnValues(instance)) return null
  const name = instance.over[along]?.name
  const sortsAll = ({ dim, of, within }: Sort): boolean =>
    dim === name && of.kind === 'var' && of.name === name && within === null
  return instance.parts.flatMap((p) => p.instance.sorts).find(sortsAll) ?? null
}

function evaluateOrder(
  { instance, from }: Reformat,
  sort: Sort,
  along: Dimension,
  rows: Rows,
  sizes: ReadonlyMap<string, number>,
): Int32Array {
  const rowIndices = new Int32Array(rows.indptr[rows.rows] ?? 0)
  for (let r = 0; r < rows.rows; r++) rowIndices.fill(r, rows.indptr[r], rows.indptr[r + 1])
  const { indices } = rows
  const columnIndices =
    indices instanceof Int32Array ? indices.subarray(0, rowIndices.length) : Int32Array.from(indices)
  const coords = along === 0 ? [rowIndices, columnIndices] : [columnIndices, rowIndices]
  const shape = along === 0 ? [rows.rows, rows.columns] : [rows.columns, rows.rows]
  const dims = instance.over.map((a, k) => ({ name: a.name, extent: shape[k]! }))
  const inputs = {
    sizes,
    extents: new Map(from.map((a, k) => [a.name, shape[k]!])),
    lists: new Map(),
    sets: new Map(),
  }
  const tensor = { kind: 'coords', shape, coords, values: null, dtype: 'f32' } as const
  return withScratchPool(() =>
    runSync(
      (function* () {
        const { frame, context } = yield* loadEntries(HOST, tensor, dims, false, {
          given: inputs,
          fill: 0,
          sets: new Map(),
        })
        const { at: permutation } = yield* evaluateSort(frame, sort, { ...context, places: new Map() })
        frame.release()
        return permutation as Int32Array
      })(),
    ),
  )
}

export const isSortable = (rows: Rows): boolean => (rows.indptr[rows.rows] ?? 0) <= MAX_SORTED
