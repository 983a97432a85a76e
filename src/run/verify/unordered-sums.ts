/**
 * Determinism: atomic updates on a GPU are applied in arrival order, which affects the result only if the reducer rounds. All
 * other parts of a plan have a fixed order: reductions across threads, partial results, and prefix sums.
 */
import { instructionsOf } from '../../analysis/instructions/match.ts'
import type { DeviceKind } from '../../backends/target.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import type { Kernel2, Kernel3, Launch, Stmt } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import type { Monoid } from '../../ir/values/monoid.ts'

/** A reduction whose order differs from run to run. */
export interface UnorderedSum {
  /** Name of the launch, which contains the names of its loops. */
  readonly launch: string
  readonly buffer: string
  /** Name of the reducer, such as `+`. */
  readonly reducer: string
}

/**
 * Returns the unordered sums of a plan on a kind of device. If empty, equal inputs give bitwise equal outputs. `loops`: Stage II of the
 * plan.
 */
export function unorderedSums(loops: Kernel2, plan: Kernel3, kind: DeviceKind): readonly UnorderedSum[] {
  // A single thread has a fixed order.
  if (kind === 'cpu') return []
  const instrs = instructionsOf(loops)
  const found = new Map<string, UnorderedSum>()
  const add = (launch: Launch, buffer: string, { name }: Monoid): void => {
    found.set(JSON.stringify([launch.name, buffer, name]), { launch: launch.name, buffer, reducer: name })
  }
  for (const step of plan.steps)
    if (step.kind === 'launch')
      walkStmts(step.body, (s) => {
        if (s.kind === 'reduce' && s.atomic && rounds(s.reducer))
          for (const t of s.targets) add(step, t.buffer, s.reducer)
        const instr = s.kind === 'instr' ? instrs.get(s.instr) : undefined
        if (!instr?.atomic || instr.body.kind !== 'reduce' || !rounds(instr.body.reducer)) return
        for (const b of updatedBy(s)) add(step, b, instr.body.reducer)
      })
  return [...found.values()]
}

const updatedBy = (s: Stmt): ReadonlySet<string> =>
  new Set(
    (s.kind === 'instr' ? s.texts : []).flatMap(({ pieces }) =>
      pieces.flatMap((p) =>
        typeof p === 'object' && p.kind !== 'value' && p.mode === 'update' ? [p.buffer] : [],
      ),
    ),
  )

const EXACT: readonly string[] = ['min', 'max']

/** Returns true if a reducer computes with floats, so that its result depends on the order. */
const rounds = ({ result }: Monoid): boolean => result.some((e) => someExpr(e, isRounded))

function isRounded(e: Expr): boolean {
  if (e.kind === 'binary') return isFloat(e.dtype) && !EXACT.includes(e.op)
  return e.kind === 'call' && isFloat(e.dtype)
}
