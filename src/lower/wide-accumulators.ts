/**
 * Wide accumulators (mixed-precision accumulation). Invariant reached: every reduction accumulates in the type its buffer
 * asks for. Where a schedule does not keep the accumulator in registers, it is a temporary of that type, rounded into the
 * buffer at the end.
 */

import { renameBuffer } from '../ir/bindings.ts'
import { namesOf } from '../ir/bound-names.ts'
import { cast, constant, load } from '../ir/expr.ts'
import type { Buffer, Kernel2, Stmt } from '../ir/loops.ts'
import { isBuiltinReducer, widened } from '../ir/monoid.ts'
import { store, unflattened } from '../ir/statement-builders.ts'
import { type Body, rewriteStmts, stmt, walkStmts } from '../ir/tree.ts'
import { flatNest, isParallel } from './flat-nest.ts'

export function accumulateWide(kernel: Kernel2): Kernel2 {
  const reduced = new Set<string>()
  walkStmts(kernel.body, (s) => {
    if (s.kind === 'reduce') for (const t of s.targets) reduced.add(t.buffer)
  })
  const wide = kernel.buffers.filter((b) => reduced.has(b.name) && b.accumulate !== b.dtype)
  if (wide.length === 0) return kernel
  const names = namesOf(kernel)
  const parallel = isParallel(kernel.body)
  let body: Body = kernel.body
  const temporaries: Buffer[] = []
  for (const b of wide) {
    const name = names.fresh(`${b.name}_wide`)
    const temporary: Buffer = { ...b, name, dtype: b.accumulate, role: 'local' }
    temporaries.push(temporary)
    const renamed = retype(renameBuffer(body, b.name, name), temporary)
    const copy = (to: Buffer, from: Buffer): Stmt =>
      flatNest(b, `${b.name}_round`, names, parallel, (p) => {
        const index = unflattened(p, b.shape)
        return store(to.name, index, load(from.name, index, from.dtype))
      })
    body = [...(b.role === 'inout' ? [copy(temporary, b)] : []), ...renamed, copy(b, temporary)]
  }
  return { ...kernel, buffers: [...kernel.buffers, ...temporaries], body }
}

/** What was renamed has the type of the temporary, and is combined in it; what is read of it is the buffer's value. */
function retype(body: Body, to: Buffer): Body {
  return rewriteStmts(body, {
    expr: (e) =>
      e.kind === 'load' && e.buffer === to.name
        ? cast(load(to.name, e.index, to.dtype, e.span), e.dtype)
        : undefined,
    stmt: (s) => {
      if (s.kind === 'reduce' && s.targets.some((t) => t.buffer === to.name)) {
        const targets = s.targets.map((t) =>
          t.buffer === to.name ? load(to.name, t.index, to.dtype, t.span) : t,
        )
        const { name } = s.reducer
        return stmt({
          ...s,
          targets,
          reducer: isBuiltinReducer(name) ? widened(s.reducer, to.dtype) : s.reducer,
        })
      }
      if (s.kind === 'fill' && s.buffer === to.name && s.value.kind === 'const')
        return stmt({ ...s, value: constant(s.value.value, to.dtype) })
      return undefined
    },
  })
}
