/**
 * Loop versioning for padded copies. Invariant reached: unrolled copies into registers whose elements are each tested for existence test
 * only the last element. If it exists, all elements are loaded unconditionally, and their loads are in flight together.
 * This requires a condition that is monotone in the loop variables, and that does not wrap.
 */

import { loopMap, rises } from '../../analysis/integers/linear.ts'
import { registersOver } from '../../analysis/integers/ranges.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { all, conjuncts, type Expr, int } from '../../ir/expressions/expr.ts'
import { mentions, readsSome, someExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { copyStatements } from '../../ir/statements/clone-loops.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { Buffer, For, If, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, stmt } from '../../ir/statements/tree.ts'
import { specialiseLoops } from './loop-specialisation.ts'

export function versionPaddedCopies(kernel: Kernel2): Kernel2 {
  const buffers = allocations(kernel.body)
  return specialiseLoops(kernel, (loop, around, { names }) => versioned(loop, around, names, buffers))
}

function versioned(
  loop: For,
  around: readonly For[],
  names: Names,
  buffers: ReadonlyMap<string, Buffer>,
): Body | undefined {
  const copy = paddedCopy(loop, buffers)
  if (!copy) return undefined
  const { loops, padded } = copy
  const registers = registersOver(loopMap([...around, ...loops]))
  const last = new Map(loops.map((l) => [l.var, int(l.extent.kind === 'const' ? l.extent.value - 1 : 0)]))
  const repeated = loops.filter((l) => l.mode.kind === 'unroll')
  const parts = conjuncts(padded.cond)
  const follows = (c: Expr): boolean => {
    if (!loops.some((l) => mentions(c, l.var))) return true
    if (c.kind !== 'binary' || c.op !== 'lt' || loops.some((l) => mentions(c.b, l.var))) return false
    return rises(c.a, ...loops.map((l) => l.var)) && !someExpr(c, (e) => registers(e).wraps)
  }
  if (!parts.every(follows) || !repeated.some((l) => mentions(padded.cond, l.var))) return undefined
  if (readsSome(padded.cond, writesOf([loop]))) return undefined
  const whole = loops.reduceRight<Body>((body, l) => [stmt({ ...l, body })], padded.then)
  return [when(all(parts.map((c) => substitute(c, last))), whole, copyStatements([loop], names))]
}

/**
 * Matches perfectly nested constant loops around a conditional store into a register, whose `else` stores padding. Otherwise undefined.
 */
function paddedCopy(
  loop: For,
  buffers: ReadonlyMap<string, Buffer>,
): { readonly loops: readonly For[]; readonly padded: If } | undefined {
  const loops: For[] = []
  let s: Stmt | undefined = loop
  while (s?.kind === 'for') {
    const runsAlone =
      !s.cooperative && (s.mode.kind === 'serial' || s.mode.kind === 'unroll' || s.mode.kind === 'vectorize')
    if (s.extent.kind !== 'const' || s.guards.length > 0 || !runsAlone || s.body.length !== 1)
      return undefined
    loops.push(s)
    s = s.body[0]
  }
  if (s?.kind !== 'if') return undefined
  const isKept = (body: Body): boolean =>
    body.length === 1 && body[0]?.kind === 'store' && buffers.get(body[0].buffer)?.scope === 'register'
  return isKept(s.then) && isKept(s.else) ? { loops, padded: s } : undefined
}
