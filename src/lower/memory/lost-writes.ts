/**
 * Detection of writes outside of a sparsity pattern. Invariant reached: a skipped write to an element that is not stored is recorded. The
 * condition that skips it (`If.absent`) gets an `else` branch that sets the buffer's word in a status buffer, which the host reads after
 * the run. A reduction of the identity loses nothing, and is not recorded. Plans without such writes are unchanged.
 */

import { namesOf } from '../../ir/expressions/bound-names.ts'
import { binary, type Expr, int, load } from '../../ir/expressions/expr.ts'
import type { If, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { fill, local, reduction, when } from '../../ir/statements/statement-builders.ts'
import { rewriteStmts, stmt, stmtsOf } from '../../ir/statements/tree.ts'
import { builtinMonoid } from '../../ir/values/monoid.ts'

export function markLostWrites(kernel: Kernel2): Kernel2 {
  const list = [...new Set(stmtsOf(kernel.body, 'if').flatMap((s) => s.absent ?? []))]
  if (list.length === 0) return kernel
  const status = local(namesOf(kernel).fresh('lost_writes'), 'i32', [int(list.length)], 'global')
  const mark = (buffer: string): Stmt =>
    reduction({
      reducer: builtinMonoid('max', 'index'),
      targets: [load(status.name, [int(list.indexOf(buffer))])],
      values: [int(1)],
      init: false,
      // All threads write the same value, but the memory models of the targets require an atomic operation.
      atomic: true,
    })
  const body = rewriteStmts(kernel.body, {
    stmt: (s) => {
      if (s.kind !== 'if' || s.absent === undefined) return undefined
      const { absent, ...rest } = s
      const loses = losing(s)
      const marked = loses ? when(loses, [mark(absent)]) : mark(absent)
      return stmt<If>({ ...rest, else: [...s.else, marked] })
    },
  })
  return {
    ...kernel,
    buffers: [...kernel.buffers, status],
    body: [fill(status.name, int(0)), ...body],
    lostWrites: { buffer: status.name, targets: list },
  }
}

/** Returns the condition under which skipping the statement loses a value; `undefined` if it always does. */
function losing(s: If): Expr | undefined {
  const update = s.then.at(-1)
  if (update?.kind !== 'reduce') return undefined
  const { values, reducer, targets } = update
  // Initialisations of the target before the update lose nothing.
  const starts = (x: Stmt): boolean =>
    x.kind === 'store' && targets.some((t) => t.buffer === x.buffer) && x.value.kind === 'const'
  if (!s.then.slice(0, -1).every(starts)) return undefined
  return values.map((v, k) => binary('ne', v, reducer.identity[k]!)).reduce((a, b) => binary('or', a, b))
}
