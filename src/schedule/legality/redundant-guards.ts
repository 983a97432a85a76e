/**
 * Redundant guard (bounds check) elimination: guards that copies make redundant. If such a guard fails, the copy holds
 * values without effect, or the results go to elements of a local buffer that are not read.
 */

import { isIndex } from '../../analysis/integers/interval.ts'
import { boundKey, linear, linearKey, loopMap } from '../../analysis/integers/linear.ts'
import { rangesOver } from '../../analysis/integers/ranges.ts'
import { constant, type Expr, type Load, variable } from '../../ir/expressions/expr.ts'
import {
  freeVars,
  isFreeCast,
  mentions,
  mentionsSome,
  rewriteExpr,
  substitute,
} from '../../ir/expressions/expr-tree.ts'
import { coordinateName } from '../../ir/instructions/instr.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { allocations, type LoopLocation } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Reduce, Stmt, Store } from '../../ir/statements/loops.ts'
import { dropSingleIterations } from '../../ir/statements/reductions.ts'
import { type Body, replaceStmt, stmt, walkStmts } from '../../ir/statements/tree.ts'

/**
 * Returns the body without redundant guards of loops around reductions over padded and complete copies. If `within` is
 * given, only that loop and the loops inside of it change.
 */
export function eliminateRedundantGuards(body: Body, within?: string): Body {
  const local = allocations(body)
  let out = body
  for (let next: Body | undefined = body; next; next = dropOne(out, local, within)) out = next
  return out
}

/**
 * Returns the body without those conditions of a copy between local buffers that only select elements and that each
 * consumer evaluates as well: the copy is then complete.
 */
export function withoutUnreadGuards(body: Body, { path, loop }: LoopLocation): Body {
  const loops: For[] = []
  let inner: Stmt | undefined = loop
  while (inner?.kind === 'for') {
    loops.push(inner)
    inner = inner.body.length === 1 ? inner.body[0] : undefined
  }
  if (inner?.kind !== 'store' || !isWithinLocals(inner, [...path, ...loops], allocations(body))) return body
  const s = inner
  const needed = (l: For): readonly Expr[] =>
    l.guards.filter((g) => !isUnread(g, s, [s], loops.slice(loops.indexOf(l)), body))
  const bare = loops.reduceRight<Stmt>((x, l) => stmt<For>({ ...l, guards: needed(l), body: [x] }), s)
  return loops.every((l) => l.guards.length === 0) ? body : replaceStmt(body, loop, () => bare)
}

/** Returns whether all accessed elements exist in local buffers, whatever the conditions are. */
function isWithinLocals(s: Store, path: readonly For[], local: ReadonlyMap<string, Buffer>): boolean {
  const range = rangesOver(loopMap(path))
  return accessesOf([s]).every(({ buffer, index }) => {
    const shape = local.get(buffer)?.shape
    return shape?.every((n, k) => n.kind === 'const' && index[k] && isIndex(range(index[k]), n.value))
  })
}

function dropOne(body: Body, local: ReadonlyMap<string, Buffer>, within?: string): Body | undefined {
  let found: { loop: For; guard: Expr } | undefined
  walkStmts(body, (s, path) => {
    if (found || s.kind !== 'reduce') return
    const inLocals = s.targets.every((t) => local.has(t.buffer))
    const from = within === undefined ? 0 : path.findIndex((l) => l.var === within)
    for (const [k, loop] of path.entries()) {
      if (from < 0 || k < from || loop.guards.length === 0 || !onlyLoopsAround(loop, s)) continue
      const inside = path.slice(k)
      if (!readsAnyway(s, inside, local)) continue
      const guard = loop.guards.find(
        (g) =>
          ((inLocals || isCombinedAnyway(s, loop)) && isIdle(g, s, local)) ||
          (inLocals && isUnread(g, s, s.targets, inside, body)),
      )
      if (guard) found = { loop, guard }
    }
  })
  if (!found) return undefined
  const { loop, guard } = found
  const guards = loop.guards.filter((g) => g !== guard)
  return replaceStmt(body, loop, () => stmt<For>({ ...loop, guards }))
}

/**
 * Returns whether all reads are from padded copies, or at addresses independent of the outermost loop: no address is
 * out of range.
 */
function readsAnyway(
  s: Reduce,
  [loop, ...inner]: readonly For[],
  local: ReadonlyMap<string, Buffer>,
): boolean {
  const decided = new Set([loop!.var])
  const names = (e: Expr): boolean => mentionsSome(e, decided)
  for (const l of inner) if ([l.extent, ...l.guards].some(names)) decided.add(l.var)
  return accessesOf([s]).every(
    (a) => a.mode === 'write' || local.get(a.buffer)?.padding !== undefined || !a.index.some(names),
  )
}

/**
 * Returns whether the loop combines into elements that exist even if it does not run: they have been initialised
 * before.
 */
const isCombinedAnyway = (s: Reduce, loop: For): boolean =>
  loop.reduce && s.init && !s.atomic && !s.targets.some((t) => t.index.some((e) => mentions(e, loop.var)))

/** Returns whether the statement is perfectly nested in the loop. */
const onlyLoopsAround = (loop: For, s: Stmt): boolean => {
  const [only] = loop.body
  return loop.body.length === 1 && (only === s || (only?.kind === 'for' && onlyLoopsAround(only, s)))
}

/** Returns a text of a condition that is equal for equal bounds, in whatever form they and their addresses are. */
function conditionKey(condition: Expr): string {
  const g = rewriteExpr(condition, (e) =>
    isFreeCast(e)
      ? e.x
      : e.kind === 'load'
        ? variable(`${e.buffer}[${e.index.map((x) => linearKey(linear(x))).join(', ')}]`, e.dtype)
        : undefined,
  )
  return boundKey(g)
}

/** Returns `conditionKey` inside of `loops`: loops of one iteration are at 0. */
export const conditionKeys =
  (loops: readonly For[]) =>
  (condition: Expr): string =>
    conditionKey(dropSingleIterations(condition, loops))

/** Returns whether all values are the reducer's identity where the guard fails, because the reads are padding. */
function isIdle(guard: Expr, s: Reduce, local: ReadonlyMap<string, Buffer>): boolean {
  const text = conditionKey(guard)
  const padded = (e: Expr): Expr | undefined => {
    const padding = e.kind === 'load' ? local.get(e.buffer)?.padding : undefined
    if (e.kind !== 'load' || !padding) return undefined
    const at = new Map(e.index.map((x, k) => [coordinateName(k), x]))
    return padding.where.some((g) => conditionKey(substitute(g, at)) === text)
      ? constant(padding.value, e.dtype)
      : undefined
  }
  return s.values.every((v, k) => {
    const identity = s.reducer.identity[k]!
    const value = rewriteExpr(v, padded)
    return identity.kind === 'const' && value.kind === 'const' && value.value === identity.value
  })
}

/** Returns whether the guard only selects elements of the target, and each consumer evaluates the same guard. */
function isUnread(
  guard: Expr,
  s: Stmt,
  targets: readonly (Load | Store)[],
  inside: readonly For[],
  body: Body,
): boolean {
  const reduced = new Set(inside.flatMap((l) => (l.reduce ? [l.var] : [])))
  if (mentionsSome(guard, reduced)) return false
  return targets.every((t) =>
    accessesOf(body).every((a) => {
      if (a.buffer !== t.buffer || a.stmt === s) return true
      if (a.mode === 'write') return false
      const map = new Map<string, Expr>()
      for (const [k, e] of t.index.entries()) if (e.kind === 'var') map.set(e.name, a.index[k]!)
      // The index must determine the loops inside that the guard depends on.
      if (inside.some((l) => freeVars(guard).has(l.var) && !map.has(l.var))) return false
      const text = conditionKey(substitute(guard, map))
      return a.path.some((l) => l.guards.some((g) => conditionKey(g) === text))
    }),
  )
}
