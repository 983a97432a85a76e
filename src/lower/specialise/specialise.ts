/**
 * Specialisation under conditions: the rewriter of the passes in this folder. A finder reads one list of statements and returns data: a
 * condition with the statements that have two versions, or the part of a loop in which conditions hold. The rewriter alone copies
 * statements, simplifies each version under its condition, and limits the growth of the code.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import { rises } from '../../analysis/integers/linear.ts'
import { naturals } from '../../analysis/integers/ranges.ts'
import { nestedFacts, simplifyUnder } from '../../analysis/integers/simplify-under.ts'
import { unrolledSize } from '../../analysis/loops/segmented-loops.ts'
import { MAX_UNROLLED } from '../../ir/code-size-budgets.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { all, type Expr, int, lt, sub } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { hasWrappingTerms } from '../../ir/expressions/wrapping-values.ts'
import { mapSame, reuseIfSame } from '../../ir/lists.ts'
import { memoize } from '../../ir/memoize.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { bodyAt, copyStatements } from '../../ir/statements/clone-loops.ts'
import { allocations, definitionsIn } from '../../ir/statements/definitions.ts'
import type { Fact, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, mapBodies, someStmt, stmt, withBody } from '../../ir/statements/tree.ts'

/** Maximum number of statements, after unrolling, of a copy. */
const LONGEST = 1024

/** Statements have two versions: `if (when) { … } else { … }`. */
export interface Version {
  readonly when: Expr
  /** Conditions inside that hold under `when`, in addition to `when` itself. */
  readonly holds?: Iterable<Expr>
  /** Both versions use the buffers that the list allocates. Otherwise statements that allocate shared memory have no second version. */
  readonly sharesBuffers?: true
}

/** A loop runs until `end`. Further iterations have no effect, or there is one more. */
export interface Split {
  readonly end: Expr
  /** Guards of the loop, or inside, that hold before `end`. */
  readonly holds: Iterable<Expr>
  /** The body of the iteration at `end`, if the loop has it. */
  readonly last?: Body
}

export interface Place {
  /** The loops around the list, from the outermost. */
  readonly path: readonly For[]
  readonly facts: Facts
}

/** Returns the first statements of a list, [from, to), that are specialised; undefined if there are none. */
export type Finder = (
  list: Body,
  at: Place,
) => ({ readonly from: number; readonly to: number } & (Version | Split)) | undefined

interface Options {
  readonly names: Names
  readonly sizes?: readonly Fact[] | undefined
  /** Nested lists come first. Otherwise outer lists come first, and versions are final. */
  readonly innermost?: true
}

export function specialise(body: Body, find: Finder, { names, sizes, innermost }: Options): Body {
  let room = MAX_UNROLLED - unrolledSize(body)
  /** Returns true if the code may grow by these statements, which are then counted. */
  const mayGrow = (copy: Body): boolean => {
    const size = unrolledSize(copy)
    const allocates = someStmt(copy, (s) => s.kind === 'alloc' && s.buffer.scope !== 'register')
    if (allocates || size > Math.min(LONGEST, room)) return false
    room -= size
    return true
  }
  const versions = (all: Body, { when: cond, holds = [], sharesBuffers }: Version, { facts }: Place) => {
    const shared = sharesBuffers ? all.filter((s) => s.kind === 'alloc') : []
    const range = sharesBuffers ? all.filter((s) => s.kind !== 'alloc') : all
    const [where, elsewhere] = [facts.where(cond).child(), facts.child()]
    for (const c of [cond, ...holds]) where.holds(c)
    elsewhere.refuted(cond)
    const then = simplifyUnder(range, where)
    const otherwise = simplifyUnder(range, elsewhere)
    // The second version keeps its names if nothing that depends on the condition is gone there; otherwise the first one does.
    const isFirstCopied = unrolledSize(otherwise) === unrolledSize(simplifyUnder(range, facts))
    const [copy, kept] = isFirstCopied ? [then, otherwise] : [otherwise, then]
    if (!mayGrow(copy)) return undefined
    const bound = new Set(kept.flatMap((s) => [...definitionsIn(s).names]))
    const copied = copyStatements(copy, names, new Map(), (name) => bound.has(name))
    return [...shared, isFirstCopied ? when(cond, copied, kept) : when(cond, kept, copied)]
  }
  const split = (loop: For, { end, holds, last }: Split, at: Place): Body | undefined => {
    if (last && !mayGrow(last)) return undefined
    const before = at.facts.child()
    for (const c of holds) before.holds(c)
    const shorter = simplifyUnder([stmt<For>({ ...loop, extent: end })], before)
    const more = last ? [when(lt(end, loop.extent), bodyAt({ ...loop, body: last }, end, names))] : []
    return [...shorter.map((s) => inside(s, at)), ...more]
  }
  const inside = (s: Stmt, { path, facts }: Place): Stmt => {
    const nested = nestedFacts(s, facts)
    const around = s.kind === 'for' ? [...path, s] : path
    return mapBodies(s, (list, k) => searchAll(list, { path: around, facts: nested(k) }))
  }
  const searchAll = (list: Body, at: Place): Body => {
    const searched = innermost ? mapSame(list, (s) => inside(s, at)) : list
    return reuseIfSame(list, search(searched, at))
  }
  const search = (list: Body, at: Place): Body => {
    const visit = (s: Stmt): Stmt => (innermost ? s : inside(s, at))
    const found = list.length > 0 ? find(list, at) : undefined
    if (!found) return mapSame(list, visit)
    const { from, to } = found
    const range = list.slice(from, to)
    const replaced = 'end' in found ? split(range[0] as For, found, at) : versions(range, found, at)
    const others = () => (range.length > 1 ? range.flatMap((s) => search([s], at)) : range.map(visit))
    return [...list.slice(0, from).map(visit), ...(replaced ?? others()), ...search(list.slice(to), at)]
  }
  return searchAll(body, { path: [], facts: new Facts({ sizes }) })
}

/** Specialises the nests of a kernel in Stage II. */
export function specialiseNests(kernel: Kernel2, find: Finder): Kernel2 {
  const names = namesOf(kernel)
  const body = kernel.body.flatMap((nest) => specialise([nest], find, { names, sizes: kernel.facts }))
  return withBody(kernel, reuseIfSame(kernel.body, body))
}

/** Returns a finder of opportunities at single loops. */
export const atLoops =
  (find: (loop: For, at: Place) => Version | Split | undefined): Finder =>
  (list, at) => {
    for (const [from, s] of list.entries()) {
      const found = s.kind === 'for' ? find(s, at) : undefined
      if (found) return { ...found, from, to: from + 1 }
    }
    return undefined
  }

/** Returns a predicate for expressions over the kernel's loops and index arrays that cannot be negative. */
export const naturalsIn = memoize((k: Kernel2) => naturals(k.body, k.params, k.buffers))

/** Returns true if the loop indexes an allocated array. Register arrays require that such loops are unrolled. */
export function indexesArrays(loop: For, kernel: Kernel2): boolean {
  const arrays = allocations(kernel.body)
  return accessesOf(loop.body).some((a) => arrays.has(a.buffer) && a.index.some((e) => mentions(e, loop.var)))
}

/** Returns the condition that `holds` hold in the last iteration of loops; undefined if they may not hold in each iteration then. */
export function lastIteration(holds: readonly Expr[], loops: readonly For[]): Version | undefined {
  const varies = (e: Expr): boolean => loops.some((l) => mentions(e, l.var))
  const isImplied = (c: Expr): boolean => {
    if (!varies(c)) return true
    if (c.kind !== 'binary' || c.op !== 'lt' || varies(c.b)) return false
    return !hasWrappingTerms(c.a) && !hasWrappingTerms(c.b) && rises(c.a, ...loops.map((l) => l.var))
  }
  const last = new Map(loops.map((l) => [l.var, sub(l.extent, int(1))]))
  return holds.every(isImplied) ? { when: all(holds.map((c) => substitute(c, last))), holds } : undefined
}
