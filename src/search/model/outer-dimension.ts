/** By which of its dimensions a matrix is sampled: what its format has outermost is taken whole, row by row or column by column. */
import { freeVars } from '../../ir/expr-tree.ts'
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
  const axes = allAxesOf(kernel)
  const isByColumns = (of: readonly string[]): boolean => {
    for (const name of of) {
      const axis = axes.get(name)
      const sizes = axis && 'extent' in axis ? freeVars(axis.extent) : new Set()
      const [byRows, byColumns] = [rows !== undefined && sizes.has(rows), sizes.has(columns)]
      if (byRows || byColumns) return byColumns && !byRows
    }
    return false
  }
  return (callerTensor(kernel, tensor)?.buffers ?? []).every((b) => isByColumns(b.axes)) ? 1 : 0
}
