/**
 * Initialisation of reductions with the identity. Invariant reached: no reduction carries its own initialisation; every target is set to
 * the identity once, before the first combine.
 * The initialisation is placed before the outermost reduction loop (or the instruction around it), under copies of the spatial loops in
 * between. If the target's element changes with a reduction loop, or the loop is parallel, the whole buffer is filled first.
 */

import { spatialNest } from '../../analysis/dependence/full-coverage.ts'
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { withFills } from '../../ir/coordinates/rounds.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { replaceLoop } from '../../ir/statements/definitions.ts'
import type { Fill, For, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { initsOf, type ReductionPath, storeIdentity } from '../../ir/statements/reductions.ts'
import { fill, when } from '../../ir/statements/statement-builders.ts'
import { type Body, replaceStmt, stmt } from '../../ir/statements/tree.ts'
import { initialValue } from '../../ir/values/monoid.ts'

export function initializeReductions(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  let body: Body = kernel.body
  const fills: Fill[] = []
  for (;;) {
    const site = initsOf(body)[0]
    if (!site) break
    const { reduce } = site
    const plain = stmt<Reduce>({ ...reduce, init: false })
    const started = withStart(body, site, names)
    if (started) {
      body = replaceStmt(started, reduce, () => plain)
    } else {
      for (const [k, t] of reduce.targets.entries()) {
        const buffer = kernel.buffers.find((b) => b.name === t.buffer)
        invariant(buffer, `the local buffer ${t.buffer} cannot be initialised before its reduction`)
        fills.push(fill(buffer.name, initialValue(reduce.reducer.identity[k]!, buffer.dtype)))
      }
      body = replaceStmt(body, reduce, () => plain)
    }
  }
  return { ...kernel, body: withFills(body, fills, (s) => accessesOf([s]).map((a) => a.buffer)) }
}

/**
 * Inserts the initialisation of a reduction's targets before the outermost reduction loop or instruction around it, for elements that
 * satisfy `cond`. Undefined if this place is not legal.
 */
export function withStart(
  body: Body,
  { reduce, path }: ReductionPath,
  names: Names,
  cond?: Expr,
): Body | undefined {
  // The loops of an instruction cannot contain other statements.
  const at = path.findIndex((l) => l.reduce || l.mode.kind === 'instr')
  const inside = at < 0 ? [] : path.slice(at)
  const nest = fitsBefore(reduce, inside) ? startsOf(reduce, inside, names, cond) : undefined
  if (!nest) return undefined
  return at < 0
    ? replaceStmt(body, reduce, () => [...nest, reduce])
    : replaceLoop(body, path[at]!.var, (loop) => [...nest, loop])
}

/** Returns true if the element does not change with a reduction loop, and no reduction loop is parallel. */
const fitsBefore = (reduce: Reduce, inside: readonly For[]): boolean =>
  inside
    .filter((l) => l.reduce)
    .every(
      (r) => r.mode.kind !== 'bind' && reduce.targets.every((t) => t.index.every((e) => !mentions(e, r.var))),
    )

/**
 * Sets the targets to the identity, over copies of the spatial loops `inside`. Guards that mention no copied loop are dropped, because
 * skipped elements need the identity too. Undefined if no such nest exists.
 */
export const startsOf = (
  reduce: Reduce,
  inside: readonly For[],
  names: Names,
  cond?: Expr,
): readonly Stmt[] | undefined =>
  spatialNest(
    inside,
    reduce.targets.flatMap((t) => t.index),
    (base) => names.fresh(base),
    (renamed) => {
      const elements = reduce.targets.map((t) => substitute(t, renamed) as Load)
      const stores = storeIdentity(reduce, elements)
      return cond ? [when(substitute(cond, renamed), stores)] : stores
    },
  )?.nest
