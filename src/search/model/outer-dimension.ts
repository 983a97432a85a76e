/**
 * Chooses the dimension along which a matrix is sampled: its format's outermost one, so that complete rows or columns are
 * taken.
 */
import type { Expr } from '../../ir/expr.ts'
import { walkExpr } from '../../ir/expr-tree.ts'
import type { FormatInstance } from '../../ir/format.ts'
import { operandsOf } from '../../ir/queries.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import { allAxesOf, callerTensor } from '../../run/bind/caller-tensors.ts'

/** 0: rows, 1: columns. */
export type Dimension = 0 | 1

/** The size that is the extent of a tensor's dimension. */
export function sizeOf(kernel: Kernel1, tensor: string, dimension: Dimension): string | undefined {
  const name = axesOfBinding(kernel, tensor)[dimension]
  const axis = name === undefined ? undefined : allAxesOf(kernel).get(name)
  return axis && 'extent' in axis && axis.extent.kind === 'var' ? axis.extent.name : undefined
}

/** Columns where all parts have columns, or groups of them, outside of rows. */
export function outerDimension(kernel: Kernel1, tensor: string): Dimension {
  const [rows, columns] = [sizeOf(kernel, tensor, 0), sizeOf(kernel, tensor, 1)]
  if (columns === undefined || rows === columns) return 0
  const over = axesOfBinding(kernel, tensor)
  const isByColumns = (of: readonly string[]): boolean => {
    for (const name of of) {
      const told = dimensionsOf(kernel, over, name, true)
      if (told && told.size > 0) return told.has(1) && !told.has(0)
    }
    return false
  }
  return (callerTensor(kernel, tensor)?.buffers ?? []).every((b) => isByColumns(b.axes)) ? 1 : 0
}

/**
 * Axes of a tensor's format on which rows and columns have numbers alone, as pieces of rows have: all rows have the same, the
 * longest all of them.
 */
export function numberAxes(kernel: Kernel1, tensor: string): ReadonlySet<string> {
  const over = axesOfBinding(kernel, tensor)
  const found = new Set<string>()
  for (const b of callerTensor(kernel, tensor)?.buffers ?? [])
    for (const axis of b.axes) {
      if (dimensionsOf(kernel, over, axis, false)?.size !== 0) break
      found.add(axis)
    }
  return found
}

/**
 * Places of the dimensions whose coordinates say where on an axis an element is; none: it is there for all of them.
 * @param asked - Groups within which queries answer, too
 */
function dimensionsOf(
  kernel: Kernel1,
  over: readonly string[],
  axis: string,
  asked: boolean,
): ReadonlySet<number> | null {
  const at = over.indexOf(axis)
  if (at >= 0) return new Set([at])
  for (const { instance } of kernel.reformats.flatMap((r) => r.instance.parts)) {
    const written = coordinateOn(instance, axis)
    if (!written) continue
    const names = [...variablesOf(written, instance, asked)]
    return new Set(names.flatMap((v) => [...(dimensionsOf(kernel, over, v, asked) ?? [])]))
  }
  return null
}

const coordinateOn = ({ order, map, lists }: FormatInstance, axis: string): Expr | undefined =>
  map[order.indexOf(axis)] ?? lists.find((l) => l.axis.name === axis)?.coordinate

/** A query is answered within its group, as pieces of a row are numbered within the row, whatever is counted. */
function variablesOf(e: Expr, instance: FormatInstance, asked: boolean): ReadonlySet<string> {
  const found = new Set<string>()
  const groupOf = (name: string): readonly Expr[] => {
    const q = instance.queries.find((x) => x.name === name)
    if (!q) return []
    const by = 'by' in q ? q.by : []
    if (by.length === 0) return operandsOf(q)
    return asked ? by : []
  }
  walkExpr(e, (x) => {
    if (x.kind !== 'var') return
    found.add(x.name)
    for (const inside of groupOf(x.name)) for (const v of variablesOf(inside, instance, asked)) found.add(v)
  })
  return found
}
