/** Copies of loops and their bodies. */

import type { Kernel1 } from '../coordinates/stage1.ts'
import type { FreshNames } from '../expressions/bound-names.ts'
import { type Expr, variable } from '../expressions/expr.ts'
import { substitute } from '../expressions/expr-tree.ts'
import { sameData } from '../expressions/structural-equality.ts'
import { memoize } from '../memoize.ts'
import { boundVarsOf, renameBound, renameBuffers } from './bindings.ts'
import { allocations } from './definitions.ts'
import type { For, If, Kernel2, LoopMode, Stmt } from './loops.ts'
import { type Body, someStmt, stmt } from './tree.ts'

/** The body at one value of the loop variable, with fresh names for the names that it binds. */
export const bodyAt = (loop: For, value: Expr, names: FreshNames): Body =>
  copyStatements(loop.body, names, new Map([[loop.var, value]]))

/**
 * A copy of statements with fresh names for their loops, lets and allocations that `isRenamed` accepts, and with
 * variables replaced by `values`. Every statement is a new object, because statements are looked up by identity.
 */
export function copyStatements(
  statements: Body,
  names: FreshNames,
  values: ReadonlyMap<string, Expr> = new Map(),
  isRenamed: (name: string) => boolean = () => true,
): Body {
  const renamed = (bound: Iterable<string>): ReadonlyMap<string, string> =>
    new Map([...bound].filter(isRenamed).map((v) => [v, names.fresh(v)]))
  const body = renameBound(statements, renamed(boundVarsOf(statements)), { values, copy: true })
  return renameBuffers(body, renamed(allocations(body).keys()))
}

/**
 * The mode of a copied loop around other statements. Instruction and pipeline loops become serial: the copy does not
 * execute the instruction, and only the original loop is pipelined.
 */
const copiedMode = ({ mode }: For): LoopMode =>
  mode.kind === 'instr' || mode.kind === 'pipeline' ? { kind: 'serial' } : mode

/**
 * Copies of the loops under new names around the body returned by `makeBody`, which receives the new loop variables and
 * `values`.
 */
export function copyNest(
  loops: readonly For[],
  names: FreshNames,
  values: ReadonlyMap<string, Expr>,
  makeBody: (map: ReadonlyMap<string, Expr>) => Body,
): Body {
  const map = new Map(values)
  const copies = loops.map((l): For => {
    const name = names.fresh(l.var)
    map.set(l.var, variable(name))
    const extent = substitute(l.extent, map)
    const guards = l.guards.map((g) => substitute(g, map))
    return { ...l, var: name, mode: copiedMode(l), extent, guards }
  })
  return copies.reduceRight<Body>((body, l) => [stmt({ ...l, body })], makeBody(map))
}

// Barriers of a block, and conditions that are uniform across its threads.

/** True if the statement contains a barrier of the whole block. */
export const hasBlockBarrier = (s: Stmt): boolean =>
  someStmt([s], (x) => x.kind === 'barrier' && x.lanes === undefined)

/** True for a condition around a barrier: it must have the same value in all threads of the block. */
export const isUniformCondition = (s: Stmt): s is If => s.kind === 'if' && hasBlockBarrier(s)

// Hash consing of kernels: equal loops of one source become one object, so that steps find memoised results.
// Formats that differ only in their parameters often have the same loops.

const loopsOf = memoize((_: Kernel1): Map<string, Kernel2[]> => new Map())
/** Maximum number of loops kept for each source, and for each list of names. */
const MAX_CACHED = 64

/** The loops, or an earlier kernel of the same source that equals them, spans included. */
export function sharedLoops(source: Kernel1, loops: Kernel2): Kernel2 {
  const cache = loopsOf(source)
  const key = [...loops.params, ...loops.buffers].map((x) => x.name).join()
  const candidates = cache.get(key)
  const equal = candidates?.find((k) => sameData(k, loops, true))
  if (equal) return equal
  if (cache.size >= MAX_CACHED || (candidates?.length ?? 0) >= MAX_CACHED) cache.clear()
  cache.set(key, [...(cache.get(key) ?? []), loops])
  return loops
}
