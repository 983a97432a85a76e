/**
 * Loop versioning for padded copies. Invariant reached: unrolled copies into registers whose elements are each tested for existence test
 * only the last element. If it exists, all elements are loaded unconditionally, and their loads are in flight together.
 * This requires a condition that is monotone in the loop variables, and that does not wrap.
 */

import { conjuncts } from '../../ir/expressions/expr.ts'
import { mentions, readsSome, someExpr } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'
import { atLoops, lastIteration, specialiseNests } from './specialise.ts'

const MODES: ReadonlySet<string> = new Set(['serial', 'unroll', 'vectorize'])

/** Returns true for a loop of constant extent around one statement, which one thread runs. */
const isCopyLoop = ({ extent, guards, mode, cooperative, body }: For): boolean =>
  extent.kind === 'const' && guards.length === 0 && MODES.has(mode.kind) && !cooperative && body.length === 1

export function versionPaddedCopies(kernel: Kernel2): Kernel2 {
  const buffers = allocations(kernel.body)
  const isKept = (body: Body): boolean =>
    body.length === 1 && body[0]?.kind === 'store' && buffers.get(body[0].buffer)?.scope === 'register'
  return specialiseNests(
    kernel,
    atLoops((loop, { facts }) => {
      const loops: For[] = []
      let s: Stmt | undefined = loop
      for (; s?.kind === 'for'; s = s.body[0]) {
        if (!isCopyLoop(s)) return undefined
        loops.push(s)
      }
      if (s?.kind !== 'if' || !isKept(s.then) || !isKept(s.else)) return undefined
      const { cond } = s
      const isRepeated = loops.some((l) => l.mode.kind === 'unroll' && mentions(cond, l.var))
      if (!isRepeated || readsSome(cond, writesOf([loop])) || someExpr(cond, facts.wraps)) return undefined
      return lastIteration(conjuncts(cond), loops)
    }),
  )
}
