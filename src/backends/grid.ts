/**
 * Logical grids on physical ones. A launch's three logical block indices are decoded from one linear index, so
 * that no target's limit on a single dimension matters: x runs fastest.
 */
import type { Expr } from '../ir/expr.ts'

export interface Decoded {
  readonly axis: 'block_x' | 'block_y' | 'block_z'
  readonly value: (linear: string) => string
}

/** The indices that `body` mentions, with how each is computed from the linear block index. */
export function blockDecode(
  grid: readonly [Expr, Expr, Expr],
  print: (e: Expr) => string,
  body: readonly string[],
): Decoded[] {
  const uses = (axis: string): boolean => body.some((l) => new RegExp(`\\b${axis}\\b`).test(l))
  const one = (e: Expr): boolean => e.kind === 'const' && e.value === 1
  const [x, y] = grid
  const out: Decoded[] = []
  const paren = (e: Expr): string => (e.kind === 'const' || e.kind === 'var' ? print(e) : `(${print(e)})`)
  const rest = grid.slice(1).every(one)
  if (uses('block_x'))
    out.push({ axis: 'block_x', value: (l) => (one(x) ? '0' : rest ? l : `${l} % ${paren(x)}`) })
  if (uses('block_y'))
    out.push({
      axis: 'block_y',
      value: (l) =>
        one(y) ? '0' : `${one(x) ? l : `${l} / ${paren(x)}`}${one(grid[2]) ? '' : ` % ${paren(y)}`}`,
    })
  if (uses('block_z'))
    out.push({
      axis: 'block_z',
      value: (l) =>
        one(grid[2]) ? '0' : `${one(x) ? l : `${l} / ${paren(x)}`}${one(y) ? '' : ` / ${paren(y)}`}`,
    })
  return out
}

/** Blocks that a 32-bit index can count, with what the fold adds. */
const MAX_BLOCKS = 2 ** 31 - 1

/**
 * A one-dimensional grid of `total` blocks within a device's limits, folded into two dimensions where one does not
 * hold it; `undefined` where two do not either. WGSL texts undo the fold.
 */
export function physicalGrid(
  total: number,
  max: readonly [number, number, number],
): [number, number, number] | undefined {
  if (total > MAX_BLOCKS) return undefined
  if (total <= max[0]) return [total, 1, 1]
  const rows = Math.ceil(total / max[0])
  // Rows of equal length: fewer than `rows` blocks have nothing to do.
  const columns = Math.ceil(total / rows)
  return rows <= max[1] && rows * columns <= MAX_BLOCKS ? [columns, rows, 1] : undefined
}
