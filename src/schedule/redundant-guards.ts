/**
 * Redundant guard (bounds check) elimination. Guards that copies made needless: where they fail, copies hold what changes
 * nothing, or what is computed goes to elements of a local buffer that nothing reads.
 */

import { isIndex } from '../analysis/integers/interval.ts'
import { boundKey, linear, linearKey, loopMap } from '../analysis/integers/linear.ts'
import { rangesOver } from '../analysis/integers/ranges.ts'
import { accessesOf } from '../ir/accesses.ts'
import { allocations, type Found } from '../ir/definitions.ts'
import { constant, type Expr, type Load, variable } from '../ir/expr.ts'
import { freeVars, mentions, mentionsAny, rewriteExpr, substitute } from '../ir/expr-tree.ts'
import { coordinateName } from '../ir/instr.ts'
import type { Buffer, For, Reduce, Stmt, Store } from '../ir/loops.ts'
import { atSingles } from '../ir/reductions.ts'
import { type Body, replaceStmt, stmt, walkStmts } from '../ir/tree.ts'

/**
 * The body without the guards of loops around reductions over padded and whole copies that the copies have made needless;
 * of the loop `within` and those inside of it, where it is given.
 */
export function eliminateRedundantGuards(body: Body, within?: string): Body {
  const local = allocations(body)
  let out = body
  for (let next: Body | undefined = body; next; next = dropOne(out, local, within)) out = next
  return out
}

/**
 * The body with a nest that copies between local buffers as a whole: without its conditions, where they only decide which
 * elements are copied and whoever reads one asks the same.
 */
export function withoutUnreadGuards(body: Body, { path, loop }: Found): Body {
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

/** All that is read and written exists in local buffers, whatever the conditions say. */
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

/** All that is read lies in copies, or where no iteration of the outermost loop decides: no address is out of range. */
function readsAnyway(
  s: Reduce,
  [loop, ...inner]: readonly For[],
  local: ReadonlyMap<string, Buffer>,
): boolean {
  const decided = new Set([loop!.var])
  const names = (e: Expr): boolean => mentionsAny(e, decided)
  for (const l of inner) if ([l.extent, ...l.guards].some(names)) decided.add(l.var)
  return accessesOf([s]).every(
    (a) => a.mode === 'write' || local.get(a.buffer)?.padding !== undefined || !a.index.some(names),
  )
}

/** The loop combines into elements that are there whether it runs or not: they have had their identity before. */
const isCombinedAnyway = (s: Reduce, loop: For): boolean =>
  loop.reduce && s.init && !s.atomic && !s.targets.some((t) => t.index.some((e) => mentions(e, loop.var)))

/** Nothing but loops stands between the loop and the statement. */
const onlyLoopsAround = (loop: For, s: Stmt): boolean => {
  const [only] = loop.body
  return loop.body.length === 1 && (only === s || (only?.kind === 'for' && onlyLoopsAround(only, s)))
}

/** A condition as a text, equal for equal bounds however they and the addresses in them are written. */
function conditionKey(condition: Expr): string {
  const g = rewriteExpr(condition, (e) =>
    e.kind === 'load'
      ? variable(`${e.buffer}[${e.index.map((x) => linearKey(linear(x))).join(', ')}]`, e.dtype)
      : undefined,
  )
  return boundKey(g)
}

/** The same where loops are around: those of one iteration are at 0. */
export const conditionKeys =
  (loops: readonly For[]) =>
  (condition: Expr): string =>
    conditionKey(atSingles(condition, loops))

/** Where the guard fails, all values are the reducer's identity: what is read then is padding. */
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

/** The guard decides only which elements of the target are computed, and whoever reads one asks the same. */
function isUnread(
  guard: Expr,
  s: Stmt,
  targets: readonly (Load | Store)[],
  inside: readonly For[],
  body: Body,
): boolean {
  const reduced = new Set(inside.flatMap((l) => (l.reduce ? [l.var] : [])))
  if (mentionsAny(guard, reduced)) return false
  return targets.every((t) =>
    accessesOf(body).every((a) => {
      if (a.buffer !== t.buffer || a.stmt === s) return true
      if (a.mode === 'write') return false
      const map = new Map<string, Expr>()
      for (const [k, e] of t.index.entries()) if (e.kind === 'var') map.set(e.name, a.index[k]!)
      // What the loops inside decide has to be said by the index.
      if (inside.some((l) => freeVars(guard).has(l.var) && !map.has(l.var))) return false
      const text = conditionKey(substitute(guard, map))
      return a.path.some((l) => l.guards.some((g) => conditionKey(g) === text))
    }),
  )
}
