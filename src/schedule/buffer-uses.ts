/** Accesses to one buffer with the loops around them: finding them, and giving loads another meaning. */
import { targetsOf } from '../ir/accesses.ts'
import type { Expr } from '../ir/expr.ts'
import { children, isLazy, rewriteExpr } from '../ir/expr-tree.ts'
import type { For, Stmt } from '../ir/loops.ts'
import { type Body, exprsOf, mapExprs, stmt, withBodies } from '../ir/tree.ts'

/** One access inside of the loop. */
export interface Use {
  readonly mode: 'read' | 'write'
  readonly index: readonly Expr[]
  /** The loops around it, from the loop's body inwards. */
  readonly path: readonly For[]
  /** In the first condition of the innermost of these loops: it happens in every iteration, whatever the conditions say. */
  readonly asks: boolean
  /** Under an `if`, a branch of a `select`, or behind `and` / `or`: it may not happen. */
  readonly conditional: boolean
  readonly stmt: Stmt
  /** Which statement of the loop's body it belongs to. */
  readonly child: number
}

/** All accesses to a buffer in a body, searches included (with no index). */
export function usesOf(body: Body, buffer: string): readonly Use[] {
  const out: Use[] = []
  const go = (list: Body, path: readonly For[], conditional: boolean, top: number | undefined): void => {
    list.forEach((s, k) => {
      const child = top ?? k
      // What is shared counts once, and again where it is certain.
      const [seen, certain] = [new Set<Expr>(), new Set<Expr>()]
      const expr = (e: Expr, within: readonly For[], maybe: boolean, asks = false): void => {
        if (certain.has(e) || (maybe && seen.has(e))) return
        seen.add(e)
        if (!maybe) certain.add(e)
        const use = (index: readonly Expr[]): void => {
          out.push({ mode: 'read', index, path: within, asks, conditional: maybe, stmt: s, child })
        }
        if (e.kind === 'load' && e.buffer === buffer) use(e.index)
        if (e.kind === 'search' && e.buffer === buffer) use([])
        for (const [n, c] of children(e).entries()) expr(c, within, maybe || (isLazy(e) && n > 0), asks)
      }
      const inner = s.kind === 'for' ? [...path, s] : path
      if (s.kind === 'for') {
        expr(s.extent, path, conditional)
        for (const [n, g] of s.guards.entries()) expr(g, inner, conditional || n > 0, true)
        go(s.body, inner, conditional, child)
        return
      }
      for (const e of exprsOf(s)) expr(e, path, conditional)
      for (const t of targetsOf(s))
        if (t.buffer === buffer)
          out.push({ mode: 'write', index: t.index, path, asks: false, conditional, stmt: s, child })
      if (s.kind === 'if') {
        go(s.then, path, true, child)
        go(s.else, path, true, child)
      }
    })
  }
  go(body, [], false, undefined)
  return out
}

/** Rewrites the loads of a buffer, each with the loops around it. */
export function replaceLoads(
  body: Body,
  buffer: string,
  by: (index: readonly Expr[], path: readonly For[]) => Expr,
): Body {
  const go = (list: Body, path: readonly For[]): Body =>
    list.map((s) => {
      const inner = s.kind === 'for' ? [...path, s] : path
      const expr = (e: Expr, within: readonly For[]): Expr =>
        rewriteExpr(e, (x) => (x.kind === 'load' && x.buffer === buffer ? by(x.index, within) : undefined))
      let out = s
      if (s.kind === 'for')
        out = stmt<For>({ ...s, extent: expr(s.extent, path), guards: s.guards.map((g) => expr(g, inner)) })
      else out = mapExprs(s, (e) => expr(e, path))
      return withBodies(
        out,
        s.kind === 'for' ? [go(s.body, inner)] : s.kind === 'if' ? [go(s.then, path), go(s.else, path)] : [],
      )
    })
  return go(body, [])
}
