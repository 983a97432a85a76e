/**
 * Predication of pipelined loops. Software-pipelined loops under conditions, with copies on an mbarrier: every round is
 * copied, or none is made so.
 */
import { fail } from '../ast/diagnostic.ts'
import type { Expr } from '../ir/expr.ts'
import { children } from '../ir/expr-tree.ts'
import type { Instr } from '../ir/instr.ts'
import type { For } from '../ir/loops.ts'
import { type Body, exprsOf, walkStmts } from '../ir/tree.ts'

/**
 * Whether counted copies may be made whatever the loop's conditions say: of a box anywhere, since what lies beyond the
 * matrix is zeros, where the place is loaded from an address that no other load decides.
 */
export function canRunUnconditionally(own: Body, all: Body, instr: Instr): boolean {
  const loads = (e: Expr, depth: number): boolean =>
    (e.kind === 'load' && depth === 0) ||
    children(e).some((x) => loads(x, e.kind === 'load' ? depth - 1 : depth))
  let plain = own.length === all.length && instr.operands.every((o) => o.scope !== 'global' || o.mapped)
  walkStmts(own, (s) => {
    plain &&= !exprsOf(s).some((e) => loads(e, s.kind === 'store' ? 2 : 1))
  })
  return plain
}

/** Rounds that are left out are not counted, and whoever waits for one would wait for another. */
export const refuseConditions = (loop: For, instr: Instr): never =>
  fail({
    code: 'schedule/conditional-rounds',
    message: `iterations of ${loop.name} run under conditions, and ${instr.name} counts what all of them copy`,
    ...(loop.span ? { span: loop.span } : {}),
    expected:
      'a pipelined loop all iterations of which run, or copies of boxes at addresses that one load says',
    hint: 'copy by threads, or by an instruction that is waited for in groups',
  })

/** Blocks of a cluster that copy for each other agree on rounds of one loop, not on what comes after it. */
export const refuseCluster = (loop: For): never =>
  fail({
    code: 'schedule/not-one-sequence',
    message: `blocks of a cluster copy for each other in ${loop.name}, which goes on into the next iterations around`,
    ...(loop.span ? { span: loop.span } : {}),
    expected: 'no cluster, or a pipeline that ends with its loop',
  })
