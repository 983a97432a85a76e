/**
 * Invariant reached: every buffer has one dimension and every access one index, row-major over the positions of
 * the buffer's trees.
 */
import { invariant } from '../ast/diagnostic.ts'
import { add, type Expr, int, load, mul } from '../ir/expr.ts'
import type { Buffer, Stmt } from '../ir/loops.ts'
import { type Body, rewriteStmts, stmt, walkStmts } from '../ir/tree.ts'

/** Row-major address of `index` in `shape`. */
export function address(shape: readonly Expr[], index: readonly Expr[]): Expr {
  invariant(shape.length === index.length, 'an index for each dimension')
  return index.reduce<Expr>((sum, e, k) => (k === 0 ? e : add(mul(sum, shape[k]!), e)), int(0))
}

export const flatBuffer = (b: Buffer): Buffer => Object.freeze({ ...b, shape: [b.shape.reduce(mul, int(1))] })

export function flatten(body: Body, buffers: readonly Buffer[]): Body {
  const shapes = new Map<string, readonly Expr[]>(buffers.map((b) => [b.name, b.shape]))
  walkStmts(body, (s) => {
    if (s.kind === 'alloc') shapes.set(s.buffer.name, s.buffer.shape)
  })
  const flat = (buffer: string, index: readonly Expr[]): Expr => {
    const shape = shapes.get(buffer)
    invariant(shape, `no buffer ${buffer}`)
    return address(shape, index)
  }
  return rewriteStmts(body, {
    expr: (e) =>
      e.kind === 'load' && e.index.length !== 1
        ? load(e.buffer, [flat(e.buffer, e.index)], e.dtype, e.span)
        : undefined,
    stmt: (s): Stmt | undefined => {
      switch (s.kind) {
        case 'store':
          return s.index.length === 1 ? undefined : stmt({ ...s, index: [flat(s.buffer, s.index)] })
        case 'reduce':
          return stmt({
            ...s,
            targets: s.targets.map((t) =>
              t.index.length === 1 ? t : load(t.buffer, [flat(t.buffer, t.index)], t.dtype, t.span),
            ),
          })
        case 'alloc':
          return stmt({ ...s, buffer: flatBuffer(s.buffer) })
        default:
          return undefined
      }
    },
  })
}
