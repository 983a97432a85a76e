/** Every name a kernel binds, so that passes can make fresh ones. */
import { boundVarsOf } from '../ir/bindings.ts'
import type { Buffer, Stmt } from '../ir/loops.ts'
import type { Param } from '../ir/stage1.ts'
import { walkStmts } from '../ir/tree.ts'
import { Names } from './fresh-names.ts'

export function namesOf(kernel: {
  readonly params: readonly Param[]
  readonly buffers: readonly Buffer[]
  readonly body: readonly Stmt[]
}): Names {
  const taken = new Set([
    ...kernel.params.map((p) => p.name),
    ...kernel.buffers.map((b) => b.name),
    ...boundVarsOf(kernel.body),
  ])
  walkStmts(kernel.body, (s) => {
    if (s.kind === 'alloc') taken.add(s.buffer.name)
  })
  return new Names(taken)
}
