/**
 * Redundant guards (bounds checks): conditions that a loop need not evaluate. Without a guard, more iterations run. This
 * is legal if no result changes, because the values have no effect, no consumer reads the elements, or a copy has more
 * elements than are read, and if no access leaves its buffer.
 */

import { constant, type Expr, int, type Load, variable } from '../../ir/expressions/expr.ts'
import {
  freeVars,
  isFreeCast,
  mentions,
  mentionsSome,
  rewriteExpr,
  someExpr,
  substitute,
} from '../../ir/expressions/expr-tree.ts'
import { coordinateName } from '../../ir/instructions/instr.ts'
import { memoize } from '../../ir/memoize.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { allocations, type LoopLocation, perfectNest } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt, Store } from '../../ir/statements/loops.ts'
import { dropSingleIterations } from '../../ir/statements/reductions.ts'
import { type Body, replaceStmt, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { type Facts, factsInside } from '../integers/facts.ts'
import { boundKey, linear, linearKey } from '../integers/linear.ts'
import { isIdentity } from '../sparsity/fill-folding.ts'

/** A reduction under a guarded loop: the loops from the guarded loop inwards, and the loops around the guarded loop. */
export interface GuardedReduction {
  readonly reduce: Reduce
  readonly inside: readonly [loop: For, ...inner: For[]]
  readonly around: readonly For[]
  /** The body that contains the whole nest. */
  readonly body: Body
}

/** Returns the body without guards of loops around single reductions that are redundant, step by step. */
export function dropGuards(
  body: Body,
  isRedundant: (at: GuardedReduction) => (guard: Expr) => boolean,
): Body {
  let found: { loop: For; guard: Expr } | undefined
  walkStmts(body, (s, path) => {
    if (found || s.kind !== 'reduce') return
    for (const [k, loop] of path.entries()) {
      if (loop.guards.length === 0 || !onlyLoopsAround(loop, s)) continue
      const inside = [loop, ...path.slice(k + 1)] as const
      const guard = loop.guards.find(isRedundant({ reduce: s, inside, around: path.slice(0, k), body }))
      if (guard) found = { loop, guard }
    }
  })
  if (!found) return body
  const { loop, guard } = found
  const guards = loop.guards.filter((g) => g !== guard)
  return dropGuards(
    replaceStmt(body, loop, () => stmt<For>({ ...loop, guards })),
    isRedundant,
  )
}

/** Returns a text of a condition that is equal for equal bounds, in whatever form bounds and addresses are. */
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

/**
 * Returns whether the guard only selects elements of the target, and each consumer evaluates the same guard. The guard
 * may change in between: if it fails at the producer and holds at a consumer, the element has no value without this step.
 */
export function isUnread(
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

/** Returns the variables whose iterations the first loop decides: of the loop, and of loops that depend on the loop. */
export function variablesDecidedBy([loop, ...inner]: readonly [For, ...For[]]): ReadonlySet<string> {
  const decided = new Set([loop.var])
  for (const l of inner) if ([l.extent, ...l.guards].some((e) => mentionsSome(e, decided))) decided.add(l.var)
  return decided
}

/** Returns whether the element of an index exists in a buffer of this shape. */
const isWithin = (index: readonly Expr[], shape: readonly Expr[], facts: Facts): boolean =>
  index.every((e, k) => shape[k] !== undefined && facts.nonNegative(e) && facts.below(e, shape[k]))

/**
 * Returns the body without redundant guards of loops around reductions over padded and complete copies. If `within` is
 * given, only that loop and the loops inside change.
 */
export function eliminateRedundantGuards(body: Body, within?: string): Body {
  const isApart = within === undefined && body.length > 1 && body.every((s) => s.kind !== 'alloc')
  if (isApart) return body.flatMap(withoutRedundantGuards)
  const local = allocations(body)
  return dropGuards(body, ({ reduce: s, inside, around, body }) => {
    const [loop] = inside
    const isOutside = within !== undefined && ![...around, loop].some((l) => l.var === within)
    if (isOutside) return () => false
    const decided = variablesDecidedBy(inside)
    const inRange = accessesOf([s]).every(
      (a) =>
        a.mode === 'write' ||
        local.get(a.buffer)?.padding !== undefined ||
        !a.index.some((e) => mentionsSome(e, decided)),
    )
    if (!inRange) return () => false
    const inLocals = s.targets.every((t) => local.has(t.buffer))
    return (g) =>
      ((inLocals || isCombinedAnyway(s, loop)) && isIdle(g, s, local)) ||
      (inLocals && isUnread(g, s, s.targets, inside, body))
  })
}

/** Statements without allocations next to them share no local buffer. */
const withoutRedundantGuards = memoize((s: Stmt): Body => eliminateRedundantGuards([s]))

/**
 * Returns the body without conditions of a copy between local buffers that only select elements and that each
 * consumer evaluates as well: the copy is then complete.
 */
export function withoutUnreadGuards(kernel: Kernel2, { path, loop }: LoopLocation): Body {
  const { body } = kernel
  const loops = perfectNest(loop)
  const [s, another] = loops.at(-1)!.body
  if (s?.kind !== 'store' || another || loops.every((l) => l.guards.length === 0)) return body
  const [local, facts] = [allocations(body), factsInside([...path, ...loops], kernel)]
  if (!accessesOf([s]).every((a) => isWithin(a.index, local.get(a.buffer)?.shape ?? [], facts))) return body
  const needed = (l: For): readonly Expr[] =>
    l.guards.filter((g) => !isUnread(g, s, [s], loops.slice(loops.indexOf(l)), body))
  const bare = loops.reduceRight<Stmt>((x, l) => stmt<For>({ ...l, guards: needed(l), body: [x] }), s)
  return replaceStmt(body, loop, () => bare)
}

/**
 * Returns whether the loop combines into elements that exist even if the loop does not run, because an initialisation
 * comes before.
 */
const isCombinedAnyway = (s: Reduce, loop: For): boolean =>
  loop.reduce && s.init && !s.atomic && !s.targets.some((t) => t.index.some((e) => mentions(e, loop.var)))

/** Returns whether the statement is perfectly nested in the loop. */
const onlyLoopsAround = (loop: For, s: Stmt): boolean => {
  const [only] = loop.body
  return loop.body.length === 1 && (only === s || (only?.kind === 'for' && onlyLoopsAround(only, s)))
}

/** Returns `conditionKey` inside of `loops`: single iterations are at 0. */
export const conditionKeys =
  (loops: readonly For[]) =>
  (condition: Expr): string =>
    conditionKey(dropSingleIterations(condition, loops))

/** Returns whether the values are the reducer's identity where the guard fails, because the reads are padding. */
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
  return s.values.every((v, k) => isIdentity(rewriteExpr(v, padded), s.reducer.identity[k]!))
}

/**
 * Returns the guards of `members`, the loops of a copy, that only select slots of a stored tensor and do not protect
 * their existence; consumers of the copy evaluate such guards again. Each such guard holds in the first iteration of
 * the loops that it mentions. Therefore addresses that do not depend on these loops are valid, and addresses that
 * depend on them are within the buffer's shape.
 */
export function tailGuards(
  kernel: Kernel2,
  at: LoopLocation,
  buffer: Buffer,
  { index, conditions }: { readonly index: readonly Expr[]; readonly conditions: readonly Expr[] },
  members: readonly For[],
): ReadonlySet<Expr> {
  // Slots of a buffer that the kernel writes may be uninitialised.
  if (buffer.role !== 'in' || buffer.scope !== 'global') return new Set()
  const around = [...at.path, at.loop].filter((l) => !members.includes(l))
  const facts = factsInside([...around, ...members], kernel)
  const tails = together(members).filter(({ guards, vars }) => {
    const varies = (e: Expr): boolean => mentionsSome(e, vars)
    const first = new Map([...vars].map((v) => [v, int(0)]))
    const addressesThere = (e: Expr): boolean =>
      someExpr(e, (x) => (x.kind === 'load' || x.kind === 'search') && varies(x))
    return (
      guards.every((g) => facts.implies(substitute(g, first))) &&
      ![...members.map((l) => l.extent), ...conditions].some(varies) &&
      index.every(
        (e, k) => !varies(e) || (!addressesThere(e) && isWithin([e], buffer.shape.slice(k, k + 1), facts)),
      )
    )
  })
  return new Set(tails.flatMap((t) => t.guards))
}

/** Returns the guards of loops in groups: guards that mention the same loop are together. */
function together(
  members: readonly For[],
): readonly { readonly guards: readonly Expr[]; readonly vars: ReadonlySet<string> }[] {
  const names = new Set(members.map((l) => l.var))
  let groups: { guards: Expr[]; vars: Set<string> }[] = []
  for (const g of members.flatMap((l) => l.guards)) {
    const vars = new Set([...freeVars(g)].filter((v) => names.has(v)))
    const meets = (o: { vars: Set<string> }): boolean => [...vars].some((v) => o.vars.has(v))
    const own = { guards: [g], vars }
    for (const o of groups.filter(meets)) {
      own.guards.push(...o.guards)
      for (const v of o.vars) own.vars.add(v)
    }
    groups = [...groups.filter((o) => !meets(o)), own]
  }
  return groups
}
