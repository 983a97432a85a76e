/** Plans with arrays of numbers, and what stands in them. */
import { interpretPlan } from '../../src/interpret/stage3.ts'
import type { Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { walkStmts } from '../../src/ir/statements/tree.ts'
import { verify3 } from '../../src/verifiers/stage3.ts'

/** What the arrays are afterwards. */
export function runPlan(
  plan: Kernel3,
  params: Readonly<Record<string, number>>,
  arrays: Readonly<Record<string, readonly number[]>>,
): Readonly<Record<string, number[]>> {
  verify3(plan)
  const memory = new Map(Object.entries(arrays).map(([name, cells]) => [name, [...cells]]))
  interpretPlan(plan, memory, new Map(Object.entries(params)))
  return Object.fromEntries(memory)
}

/** Statements of all launches for which `holds`. */
export function statementsOf(plan: Kernel3, holds: (s: Stmt) => boolean): readonly Stmt[] {
  const out: Stmt[] = []
  for (const step of plan.steps)
    if (step.kind === 'launch') walkStmts(step.body, (s) => void (holds(s) && out.push(s)))
  return out
}
