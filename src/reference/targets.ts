/** Targets of writes, as closures. */
import { fail, invariant } from '../ast/diagnostics/diagnostic.ts'
import type { Load } from '../ir/expressions/expr.ts'
import { type Bounds, undecide } from './error.ts'
import { undecidedIndex } from './evaluation/bounded.ts'
import { compileExpr } from './evaluation/compile-expressions.ts'
import { compileAddress, tensorOf } from './tensors/address.ts'
import type { Context, Scope } from './tensors/cells.ts'
import { spanOf } from './tensors/reference-buffers.ts'

export interface Target {
  readonly data: Float64Array
  readonly bounds: Bounds
  /**
   * The address of the element. Throws if it does not exist, unless `isIdentity` (a reducer's identity); −1 in that
   * case, and if the index is undecided.
   */
  readonly address: (isIdentity: boolean) => number
}

export function compileTarget(e: Load, scope: Scope, ctx: Context): Target {
  const t = tensorOf(ctx, e.buffer)
  const address = compileAddress(t, e, scope, (x) => compileExpr(x, scope, ctx))
  const coords = e.index.map((x) => compileExpr(x, scope, ctx))
  const isUndecided = undecidedIndex(e, scope, ctx)
  const { bounds } = t
  invariant(bounds, `${e.buffer} is written`)
  return {
    data: t.data,
    bounds,
    address: (isIdentity) => {
      if (isUndecided?.()) {
        undecide(bounds)
        return -1
      }
      const a = address()
      if (a >= 0 || isIdentity || ctx.undecidedDepth.v > 0) return a
      return fail({
        code: 'reference/absent-target',
        message: `${e.buffer}[${coords.map((c) => c()).join(', ')}] is written, but it is not stored`,
        ...spanOf(e.span),
        hint: 'write only to coordinates that the buffer holds: iterate its own axes, or guard with `if`',
      })
    },
  }
}
