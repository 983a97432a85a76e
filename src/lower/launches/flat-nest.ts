/** A loop nest over all elements of a buffer by flat address, for fills and whole-buffer copies. */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { add, type Expr, int, lt, mul, variable } from '../../ir/expressions/expr.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import { forLoop } from '../../ir/statements/statement-builders.ts'
import { someStmt } from '../../ir/statements/tree.ts'

/** Number of threads per block. */
const THREADS = 256

/** Returns true if a loop is bound to a hardware axis; new nests are then bound too. */
export const isParallel = (body: readonly Stmt[]): boolean =>
  someStmt(body, (s) => s.kind === 'for' && s.mode.kind === 'bind')

/** Returns a loop that runs `each(p)` for every flat address p of the buffer. */
export function flatNest(
  buffer: Buffer,
  nest: string,
  names: Names,
  parallel: boolean,
  each: (p: Expr) => Stmt,
): For {
  const total = buffer.shape.reduce(mul, int(1))
  const p = names.fresh('p')
  if (!parallel) return forLoop(p, total, [each(variable(p))], { name: nest, nest })
  const block = names.fresh('p_block')
  const at = add(mul(variable(block), int(THREADS)), variable(p))
  const inner = forLoop(p, int(THREADS), [each(at)], {
    name: nest,
    nest,
    guards: [lt(at, total)],
    mode: { kind: 'bind', to: 'thread.x' },
  })
  const blocks: Expr = {
    kind: 'binary',
    op: 'div',
    a: add(total, int(THREADS - 1)),
    b: int(THREADS),
    dtype: 'i32',
  }
  return forLoop(block, blocks, [inner], { name: nest, nest, mode: { kind: 'bind', to: 'block.x' } })
}
