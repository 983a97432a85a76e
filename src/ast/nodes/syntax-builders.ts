/** Syntax that no text of a program has: iterations and scalar buffers that elaboration adds. */
import type { Ident } from './nodes-base.ts'
import type { Access, Expr, Name, NumberLit } from './nodes-exprs.ts'
import type { Assign, BufferDecl, Iter, Iterate, Stmt } from './nodes-kernels.ts'

/** Copies a buffer into another one over the same axes. */
export function copyIteration(name: string, { name: to, axes, span }: BufferDecl, from: string): Iterate {
  const index = axes.map((x): Name => ({ kind: 'name', name: x.name, span }))
  const iters = axes.map((x): Iter => ({ name: x, axis: x, mode: 'S', span }))
  const value: Access = { kind: 'access', buffer: { name: from, span }, index, span }
  return nest({ name, span }, [assign({ ...value, buffer: { name: to.name, span } }, value)], iters)
}

export const nest = (name: Ident, body: readonly Stmt[], iters: readonly Iter[] = []): Iterate => ({
  kind: 'iterate',
  name,
  iters,
  where: null,
  body,
  span: name.span,
})

export const assign = (target: Access, value: Expr): Assign => ({
  kind: 'assign',
  targets: [target],
  values: [value],
  span: target.span,
})

/** A local integer buffer without dimensions. */
export const integerBuffer = (name: Ident): BufferDecl => ({
  kind: 'buffer',
  name,
  type: { name: 'i32', span: name.span },
  axes: [],
  role: { name: 'local', span: name.span },
  fill: null,
  accumulate: null,
  span: name.span,
})

/** The element of a buffer without dimensions. */
export const elementOf = (buffer: Ident): Access => ({
  kind: 'access',
  buffer,
  index: [],
  span: buffer.span,
})

export function integer(value: number, span: Ident['span']): Expr {
  const number: NumberLit = { kind: 'number', value: Math.abs(value), float: false, span }
  return value < 0 ? { kind: 'unary', op: 'neg', x: number, span } : number
}
