/**
 * Detection of writes outside of a sparsity pattern. Invariant reached: a write whose element does not exist leaves a mark.
 * The condition that skips it (`If.absent`) gets an `else` that sets the buffer's word in a status buffer of the plan;
 * whoever runs the plan reads it afterwards. A reduction that would combine the identity loses nothing and leaves none.
 * Plans without such writes stay as they are.
 */

import { namesOf } from '../ir/bound-names.ts'
import { binary, type Expr, int, load } from '../ir/expr.ts'
import type { If, Kernel2, Stmt } from '../ir/loops.ts'
import { builtinMonoid } from '../ir/monoid.ts'
import { fill, local, reduction, when } from '../ir/statement-builders.ts'
import { rewriteStmts, stmt, walkStmts } from '../ir/tree.ts'

export function markLostWrites(kernel: Kernel2): Kernel2 {
  const targets = new Set<string>()
  walkStmts(kernel.body, (s) => {
    if (s.kind === 'if' && s.absent !== undefined) targets.add(s.absent)
  })
  if (targets.size === 0) return kernel
  const list = [...targets]
  const status = local(namesOf(kernel).fresh('lost_writes'), 'i32', [int(list.length)], 'global')
  const mark = (buffer: string): Stmt =>
    reduction({
      reducer: builtinMonoid('max', 'i32'),
      targets: [load(status.name, [int(list.indexOf(buffer))], 'i32')],
      values: [int(1)],
      init: false,
      // Every thread that sets the word sets it to the same value, but memory models want to hear it said.
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

/** Whether skipping the statement loses anything, where that depends on values; `undefined`: it does. */
function losing(s: If): Expr | undefined {
  const update = s.then.at(-1)
  if (update?.kind !== 'reduce') return undefined
  const { values, reducer, span, targets } = update
  // It may begin with what it goes on from.
  const starts = (x: Stmt): boolean =>
    x.kind === 'store' && targets.some((t) => t.buffer === x.buffer) && x.value.kind === 'const'
  if (!s.then.slice(0, -1).every(starts)) return undefined
  // With the span of what the text says: values are compared here, which may wrap, and no positions (ir/values).
  return values
    .map((v, k) => binary('ne', v, reducer.identity[k]!, span))
    .reduce((a, b) => binary('or', a, b))
}
