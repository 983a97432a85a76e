/**
 * Tensor maps (TMA descriptors): buffers as matrices whose boxes instructions copy. The last dimension is the columns, all other
 * dimensions together are the rows.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { type Expr, int, mul } from '../../ir/expressions/expr.ts'
import type { Operand } from '../../ir/instructions/instr.ts'
import type { Matrix } from '../../ir/instructions/instr-call.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { address } from '../memory/buffer-flattening.ts'

export function matrixOf(b: Buffer, o: Operand): Matrix {
  const [rows, columns] = o.shape
  invariant(o.mapped && rows !== undefined && columns !== undefined, `${o.name} is no box`)
  return {
    rows: b.shape.slice(0, -1).reduce(mul, int(1)),
    columns: b.shape.at(-1)!,
    box: [rows, columns],
    swizzle: o.mapped.swizzle,
  }
}

/** The row and the column of an element. */
export const matrixIndex = (b: Buffer, index: readonly Expr[]): readonly [Expr, Expr] => [
  address(b.shape.slice(0, -1), index.slice(0, -1)),
  index.at(-1)!,
]
