/** The iteration that copies a buffer: syntax that no text of a program has. */
import type { Access, Name } from './nodes-exprs.ts'
import type { BufferDecl, Iterate } from './nodes-kernels.ts'

/** Copies a buffer into another one over the same axes. */
export function copyIteration(name: string, { name: to, axes, span }: BufferDecl, from: string): Iterate {
  const index = axes.map((x): Name => ({ kind: 'name', name: x.name, span }))
  const access = (buffer: string): Access => ({ kind: 'access', buffer: { name: buffer, span }, index, span })
  return {
    kind: 'iterate',
    name: { name, span },
    iters: axes.map((x) => ({ name: x, axis: x, mode: 'S', span })),
    where: null,
    body: [{ kind: 'assign', targets: [access(to.name)], values: [access(from)], span }],
    span,
  }
}
