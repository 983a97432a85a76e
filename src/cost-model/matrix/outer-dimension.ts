/**
 * Chooses the dimension along which a matrix is sampled: the outermost one of its format, so that samples contain
 * complete rows or columns.
 */

import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { walkExpr } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import { operandsOf } from '../../ir/formats/queries.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import { allAxesOf, callerTensor } from '../../run/bind/sources/caller-tensors.ts'

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

/**
 * Axes of a tensor's format whose coordinate is only an ordinal, such as the pieces of a split row. All rows share
 * these coordinates; the longest row has all of them.
 */
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

/**
 * Indices of the dimensions on which the coordinate on an axis depends; empty for an ordinal, `null` for an unknown
 * axis.
 * @param throughQueries - Include dimensions within whose groups queries are evaluated
 */
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

/**
 * Variables of an expression, including the operands of queries. A query with `by` is evaluated within its group, as
 * pieces are numbered within a row.
 */
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
