/**
 * Grid linearisation (`maxComputeWorkgroupsPerDimension` of WebGPU, `gridDim` of CUDA): maps logical grids to physical grids.
 * A grid within the device's limits is used unchanged. A larger grid is folded, and block indices are decoded from one linear
 * index (x fastest). Decoding divides, which takes as long as several loads before the first load of a block.
 */

import type { Expr } from '../ir/expressions/expr.ts'
import { isOne } from '../ir/expressions/expr.ts'

export interface BlockIndex {
  readonly axis: (typeof BLOCK_INDICES)[number]
  readonly value: (linear: string) => string
}

/** True if the grid has more than one dimension. */
export const isMultiDimensional = (grid: readonly [Expr, Expr, Expr]): boolean => !grid.slice(1).every(isOne)

/** An extent, parenthesised for use as an operand. */
export const operand = (e: Expr, print: (e: Expr) => string): string =>
  e.kind === 'const' || e.kind === 'var' ? print(e) : `(${print(e)})`

/** Block indices used by `body`, with their computation from the linear block index. */
export function blockDecode(
  grid: readonly [Expr, Expr, Expr],
  print: (e: Expr) => string,
  body: readonly string[],
): BlockIndex[] {
  const uses = (axis: string): boolean => body.some((l) => new RegExp(`\\b${axis}\\b`).test(l))
  return BLOCK_INDICES.flatMap((axis, d): BlockIndex[] => {
    if (!uses(axis)) return []
    const by = (op: string, e: Expr): string => (isOne(e) ? '' : ` ${op} ${operand(e, print)}`)
    const quotient = grid.slice(0, d).map((e) => by('/', e))
    const remainder = grid.slice(d + 1).every(isOne) ? '' : by('%', grid[d]!)
    return [{ axis, value: (l) => (isOne(grid[d]!) ? '0' : `${l}${quotient.join('')}${remainder}`) }]
  })
}

/** Names of block indices in generated code. */
export const BLOCK_INDICES = ['block_x', 'block_y', 'block_z'] as const

/** Maximum number of blocks with a 32-bit index, including the padding of the fold. */
const MAX_BLOCKS = 2 ** 31 - 1

/**
 * The physical grid within a device's limits: unchanged, linearised to one dimension, or folded into two; `undefined` if two
 * do not suffice. Generated code compares it with the logical grid and undoes the fold.
 */
export function physicalGrid(
  logical: readonly [number, number, number],
  max: readonly [number, number, number],
): [number, number, number] | undefined {
  const total = logical.reduce((a, b) => a * b, 1)
  if (total > MAX_BLOCKS) return undefined
  if (logical.every((n, d) => n <= max[d]!)) return [...logical]
  if (total <= max[0]) return [total, 1, 1]
  const rows = Math.ceil(total / max[0])
  // Rows have equal length, so that fewer than `rows` blocks are idle.
  const columns = Math.ceil(total / rows)
  return rows <= max[1] && rows * columns <= MAX_BLOCKS ? [columns, rows, 1] : undefined
}
