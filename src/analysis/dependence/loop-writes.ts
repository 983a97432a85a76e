/** Writes of a loop's iterations, and whether these are provably disjoint (loop-carried output dependences). */
import { all, conjuncts, type Expr, not } from '../../ir/expressions/expr.ts'
import { mentionsSome, readsSome } from '../../ir/expressions/expr-tree.ts'
import { accessesOf, type BufferAccess, offsetsIn, writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf } from '../../ir/statements/tree.ts'
import { blockOf, type Space } from './subscript-injectivity.ts'

export function spaceIn(kernel: Kernel2, loop: For): Space {
  const inner = new Map(loopsOf(loop.body).map((l) => [l.var, l]))
  return { inner, indptr: offsetsIn(kernel.buffers), distinct: kernel.distinct }
}

/** The accesses to one buffer that iterations of a loop share through memory. */
export interface Shared {
  readonly buffer: string
  readonly accesses: readonly BufferAccess[]
  /** True if iterations provably access different elements, without the contract of `for.reduce`. */
  readonly disjoint: boolean
  /** True if an index reads memory that the loop writes, so that its value may change. */
  readonly moving: boolean
}

/** Returns the buffers that a loop's body writes and that outlive an iteration, with all accesses to them inside. */
export function writtenIn(kernel: Kernel2, loop: For, space = spaceIn(kernel, loop)): readonly Shared[] {
  const local = allocatedNames(loop.body)
  const written = new Set([...writesOf([loop])].filter((b) => !local.has(b)))
  const all = accessesOf([loop], written)
  return [...written].map((buffer) => {
    const accesses = all.filter((a) => a.buffer === buffer)
    const moving = accesses.some((a) => a.index.some((e) => readsSome(e, written)))
    return {
      buffer,
      accesses,
      moving,
      get disjoint() {
        return !moving && sameBlock(accesses, loop.var, space)
      },
    }
  })
}

/**
 * Returns whether a dimension keeps all accesses of an iteration within one block, or within one place of a table of
 * distinct elements.
 */
function sameBlock(accesses: readonly BufferAccess[], v: string, space: Space): boolean {
  const first = accesses[0]
  if (!first || accesses.some((a) => a.whole)) return false
  const block = (e: Expr): string | undefined => blockOf(e, v, space)
  return first.index.some((e, d) => {
    const own = block(e)
    return own !== undefined && accesses.every((a) => a === first || block(a.index[d]!) === own)
  })
}

/**
 * Returns whether iterations run one by one, in order or on several threads: not ahead of time, as an instruction, or
 * accumulated by rows.
 */
export const isPlain = ({ mode }: For): boolean =>
  ['serial', 'bind', 'unroll', 'vectorize'].includes(mode.kind)

/**
 * Returns whether iterations share no element, whatever the loop declares: rows that are different because of a
 * permutation, or of a list without repeats. A reduction that initialises its elements does not qualify, because the
 * place of its initialisation depends on the declared loops.
 */
export function isIndependent(kernel: Kernel2, loop: For): boolean {
  if (!isPlain(loop)) return false
  const once = loop.extent.kind === 'const' && loop.extent.value <= 1
  return writtenIn(kernel, loop).every(
    (w) => (once || w.disjoint) && w.accesses.every((a) => a.stmt.kind !== 'reduce' || !a.stmt.init),
  )
}

/** Control dependence: the conditions around a statement, and those that can be evaluated outside of some loops. */
export interface Condition {
  readonly cond: Expr
  /** The buffer whose element the `if` tests for existence (`If.absent`). */
  readonly absent?: string | undefined
}

/**
 * Returns the conditions of the `if`s around a statement of a body, and the guards of the loops around it that are in
 * `loops`, from the outside in: outer conditions may protect reads of inner ones.
 */
export function conditionsAround(body: Body, inner: Stmt, loops: readonly For[] = []): readonly Condition[] {
  const find = (list: Body): readonly Condition[] | undefined => {
    for (const s of list) {
      if (s === inner) return []
      for (const b of bodiesOf(s)) {
        const within = find(b)
        if (!within) continue
        if (s.kind === 'for' && loops.includes(s)) return [...s.guards.map((cond) => ({ cond })), ...within]
        if (s.kind !== 'if') return within
        return b === s.then
          ? [{ cond: s.cond, absent: s.absent }, ...within]
          : [{ cond: not(s.cond) }, ...within]
      }
    }
    return undefined
  }
  return find(body) ?? []
}

/**
 * Returns the conjuncts that have the same value in all iterations of the loops `hidden`: they mention no such loop,
 * and read nothing that the body writes. Conjuncts that test the existence of an element are included if its index does
 * not depend on these loops.
 */
export function hoistable(
  conditions: readonly Condition[],
  hidden: readonly For[],
  body: Body,
): readonly Condition[] {
  const vars = new Set(hidden.map((l) => l.var))
  const written = writesOf(body)
  const stays = (e: Expr): boolean => !mentionsSome(e, vars) && !readsSome(e, written)
  return conditions.flatMap(({ cond, absent }) => {
    const kept = conjuncts(cond).filter(stays)
    return kept.length > 0 ? [{ cond: all(kept), absent }] : []
  })
}
