/** Accesses to one buffer with the loops around them: collection of the accesses, and replacement of loads. */

import { conjuncts, type Expr } from '../../ir/expressions/expr.ts'
import { buffersRead, children, evaluationGuard, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { targetsOf } from '../../ir/statements/accesses.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, exprsOf, mapBodies, mapExprs, stmt } from '../../ir/statements/tree.ts'

/** An access to the buffer inside of the loop. */
export interface Use {
  readonly mode: 'read' | 'write'
  readonly index: readonly Expr[]
  /** The loops around the access, from the outer loop's body inwards. */
  readonly path: readonly For[]
  /**
   * True if the access is in a guard of the innermost loop of `path`. An access in the first guard is evaluated in
   * every iteration.
   */
  readonly asks: boolean
  /**
   * True if the access is under an `if`, in a later guard, in a branch of a `select`, or behind `and` / `or`: it may
   * not be executed, and then the element may not exist.
   */
  readonly conditional: boolean
  /**
   * The conditions in the statement's expression under which the access is evaluated; null if the access is
   * conditional for another reason, or a write.
   */
  readonly under: readonly Expr[] | null
  readonly stmt: Stmt
  /** Index of the statement in the loop's body that contains the access. */
  readonly child: number
}

/** Returns all accesses to a buffer in a body. A binary search of the buffer is a read with an empty index. */
export function usesOf(body: Body, buffer: string): readonly Use[] {
  const out: Use[] = []
  const go = (list: Body, path: readonly For[], conditional: boolean, top: number | undefined): void => {
    list.forEach((s, k) => {
      const child = top ?? k
      // A shared subexpression counts once for each set of conditions, and once more if it is evaluated
      // unconditionally.
      const [seen, certain] = [new Map<Expr, Set<string>>(), new Set<Expr>()]
      const expr = (
        e: Expr,
        within: readonly For[],
        maybe: boolean,
        asks = false,
        asked: readonly Expr[] = [],
      ): void => {
        if (!buffersRead(e).has(buffer) || certain.has(e)) return
        const conditions = asked.map(keyOf).join(' ; ')
        const before = seen.get(e) ?? new Set()
        if (before.has(conditions)) return
        seen.set(e, before.add(conditions))
        if (!maybe && asked.length === 0) certain.add(e)
        const use = (index: readonly Expr[]): void => {
          const own = asked.filter((c) => !isOfOtherData(c, index))
          const conditional = maybe || own.length > 0
          const under = maybe ? null : own
          out.push({ mode: 'read', index, path: within, asks, conditional, under, stmt: s, child })
        }
        if (e.kind === 'load' && e.buffer === buffer) use(e.index)
        if (e.kind === 'search' && e.buffer === buffer) use([])
        for (const [n, c] of children(e).entries()) {
          const guard = evaluationGuard(e, n)
          expr(c, within, maybe, asks, guard ? [...asked, ...conjuncts(guard)] : asked)
        }
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
          out.push({
            mode: 'write',
            index: t.index,
            path,
            asks: false,
            conditional,
            under: null,
            stmt: s,
            child,
          })
      if (s.kind === 'if') {
        go(s.then, path, true, child)
        go(s.else, path, true, child)
      }
    })
  }
  go(body, [], false, undefined)
  return out
}

/**
 * Returns whether a condition compares data with constants only, and reads no buffer that the address depends on.
 * Such a condition selects a value and does not decide whether the element exists.
 */
function isOfOtherData(condition: Expr, index: readonly Expr[]): boolean {
  const named = new Set(index.flatMap((e) => [...buffersRead(e)]))
  const isData = (e: Expr): boolean =>
    e.kind === 'const' ||
    (e.kind === 'load' ? !named.has(e.buffer) : children(e).length > 0 && children(e).every(isData))
  return isData(condition)
}

/** Rewrites the loads of a buffer. `by` receives the index and the loops around each load. */
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
      const own =
        s.kind === 'for'
          ? stmt<For>({ ...s, extent: expr(s.extent, path), guards: s.guards.map((g) => expr(g, inner)) })
          : mapExprs(s, (e) => expr(e, path))
      return mapBodies(own, (b) => go(b, inner))
    })
  return go(body, [])
}
