/** Temporaries that the backward pass computes again (checkpointing), so that they need no memory in between. */
import { writesOf } from '../analysis/sparsity/writes.ts'
import type { Buffer1, Iteration, Kernel1, Stmt1 } from '../ir/coordinates/stage1.ts'
import { type Body1, mapBodies1, mapExprs1, readsIn } from '../ir/coordinates/stage1-tree.ts'
import type { Names } from '../ir/expressions/bound-names.ts'
import { type Expr, load } from '../ir/expressions/expr.ts'
import { rewriteExpr } from '../ir/expressions/expr-tree.ts'
import { withoutEffects } from './needed.ts'
import { checkReads } from './rejections.ts'
import type { Named } from './request.ts'

/** Statements that access the tensor `to` in place of `from`. */
const renamed = (body: Body1, from: string, to: string, nameOf: (name: string) => string): Body1 => {
  const rename = <E extends Expr>(e: E): E =>
    rewriteExpr(e, (x) =>
      x.kind === 'load' && x.buffer === from ? load(to, x.index.map(rename), x.dtype, x.span) : undefined,
    ) as E
  const visit = (s: Stmt1): Stmt1 => {
    const own = mapBodies1(mapExprs1(s, rename, rename), (b) => b.map(visit))
    return own.kind === 'iterate' ? { ...own, name: nameOf(own.name) } : own
  }
  return body.map(visit)
}

/**
 * The backward pass with the statements of some temporaries again, before the first use of each.
 * @throws SptError `derive/overwritten` if such a statement would read other values
 */
export function recomputed(
  kernel: Kernel1,
  backward: readonly Iteration[],
  recomputing: readonly Named[],
  names: Names,
): { readonly body: Body1; readonly buffers: readonly Buffer1[] } {
  let body: Body1 = backward
  const buffers: Buffer1[] = []
  const last = (name: string): number =>
    writesOf(kernel).findLastIndex((w) => w.targets.some((t) => t.buffer === name))
  for (const { name } of recomputing.toSorted((a, b) => last(b.name) - last(a.name))) {
    const first = body.findIndex((s) => readsIn([s]).some((l) => l.buffer === name))
    if (first < 0) continue
    for (const w of writesOf(kernel))
      if (w.targets.some((t) => t.buffer === name)) checkReads(w, kernel, (l) => l.buffer !== name)
    const again = { ...kernel.buffers.find((b) => b.name === name)!, name: names.fresh(`${name}_again`) }
    buffers.push(again)
    const copies = withoutEffects(kernel.body, new Set([name]))
    body = [
      ...body.slice(0, first),
      ...renamed(copies, name, again.name, (of) => names.fresh(`${of}_again`)),
      ...renamed(body.slice(first), name, again.name, (of) => of),
    ]
  }
  return { body, buffers }
}
