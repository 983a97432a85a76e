/** Whether a kernel keeps the fill value of a tensor where no element is stored. */
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { walkStmts1 } from '../../ir/coordinates/stage1-tree.ts'
import { constant, type Expr, type Load } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { givenBy, writtenIn } from './fill-folding.ts'

const isSame = (a: readonly Expr[], b: readonly Expr[]): boolean =>
  a.length === b.length && a.every((x, d) => sameExpr(x, b[d]!))

/**
 * Returns whether a kernel may write another value than the fill value to an element that has the fill value. `alike`: tensors in the
 * same format, which have their fill values at the same coordinates.
 */
export function changesFill(kernel: Kernel1, { name, fill }: Buffer1, alike: ReadonlySet<string>): boolean {
  const fills = new Map(kernel.buffers.flatMap((b) => (alike.has(b.name) ? [[b.name, b] as const] : [])))
  let changes = false
  walkStmts1(kernel.body, (s, around) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    s.targets.forEach((t, k) => {
      if (t.buffer !== name) return
      const known = ({ buffer, index }: Load) => {
        const other = isSame(index, t.index) ? fills.get(buffer) : undefined
        return other && constant(other.fill, other.dtype)
      }
      const g = givenBy(writtenIn(s, around), known)[k]
      if (!g || g.isIdentity) return
      changes ||= s.kind === 'reduce' || g.value.kind !== 'const' || g.value.value !== fill
    })
  })
  return changes
}
