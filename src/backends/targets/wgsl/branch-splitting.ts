/**
 * Loops of which compilers follow every path. SwiftShader does, from a loop's head to its end, as often as paths of one length
 * meet: both arms of a condition double them, so that 16 conditions with two arms take a moment, 24 seconds, and 32 all of the
 * memory. A condition with one arm doubles nothing, since the way past it is shorter.
 *
 * Invariant reached: a loop holds at most `BRANCHES` conditions with two arms. Where it would hold more, each is two conditions
 * with one arm, of a value that is computed before the first of them.
 */

import { not, variable } from '../../../ir/expr.ts'
import type { If, Launch, Plan, Stmt } from '../../../ir/loops.ts'
import { define, when } from '../../../ir/statement-builders.ts'
import { type Body, bodiesOf, rewriteStmts, walkStmts, withBodies } from '../../../ir/tree.ts'

const BRANCHES = 12

export function splitBranches(plan: Plan): Plan {
  const steps = plan.steps.map((s) => (s.kind === 'launch' ? split(s) : s))
  return steps.every((s, k) => s === plan.steps[k]) ? plan : { ...plan, steps }
}

const hasTwoArms = (s: Stmt): s is If => s.kind === 'if' && s.then.length > 0 && s.else.length > 0

function split(launch: Launch): Launch {
  let count = 0
  const apart = (s: Stmt): readonly Stmt[] => {
    if (!hasTwoArms(s)) return [s]
    const cond = variable(`branch.${count++}`, 'bool')
    return [define(cond.name, s.cond), when(cond, s.then), when(not(cond), s.else)]
  }
  const inLoops = (body: Body): Body => {
    const out = body.map((s): Stmt => {
      if (s.kind !== 'for' && s.kind !== 'while') return withBodies(s, bodiesOf(s).map(inLoops))
      let branches = 0
      walkStmts(s.body, (inner) => void (branches += hasTwoArms(inner) ? 1 : 0))
      return branches > BRANCHES ? withBodies(s, [rewriteStmts(s.body, { stmt: apart })]) : s
    })
    return out.every((s, k) => s === body[k]) ? body : out
  }
  const body = inLoops(launch.body)
  return body === launch.body ? launch : { ...launch, body }
}
