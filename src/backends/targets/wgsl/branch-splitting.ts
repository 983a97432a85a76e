/**
 * Splits two-armed conditionals in loops, for compilers that follow every path. SwiftShader follows all paths through a loop that
 * have equal length, so each conditional with two arms doubles their number: 16 take a moment, 24 take seconds, and 32 exhaust
 * memory. A conditional with one arm doubles nothing, because the path past it is shorter.
 *
 * Invariant: a loop contains at most `MAX_BRANCHES` conditionals with two arms. Otherwise each is split into two conditionals with
 * one arm, whose condition is computed before.
 */

import { not, variable } from '../../../ir/expressions/expr.ts'
import { reuseIfSame } from '../../../ir/lists.ts'
import type { If, Kernel3, Launch, Stmt } from '../../../ir/statements/loops.ts'
import { define, when } from '../../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, rewriteStmts, stmtsOf, withBodies } from '../../../ir/statements/tree.ts'
import { mapLaunches } from '../../launch-uses.ts'

const MAX_BRANCHES = 12

export const splitBranches = (plan: Kernel3): Kernel3 => mapLaunches(plan, splitLaunch)

const hasTwoArms = (s: Stmt): s is If => s.kind === 'if' && s.then.length > 0 && s.else.length > 0

function splitLaunch(launch: Launch): Launch {
  let count = 0
  const splitIf = (s: Stmt): readonly Stmt[] => {
    if (!hasTwoArms(s)) return [s]
    const cond = variable(`branch.${count++}`, 'bool')
    return [define(cond.name, s.cond), when(cond, s.then), when(not(cond), s.else)]
  }
  const splitInLoops = (body: Body): Body => {
    const out = body.map((s): Stmt => {
      if (s.kind !== 'for' && s.kind !== 'while') return withBodies(s, bodiesOf(s).map(splitInLoops))
      const branches = stmtsOf(s.body, 'if').filter(hasTwoArms).length
      return branches > MAX_BRANCHES ? withBodies(s, [rewriteStmts(s.body, { stmt: splitIf })]) : s
    })
    return reuseIfSame(body, out)
  }
  const body = splitInLoops(launch.body)
  return body === launch.body ? launch : { ...launch, body }
}
