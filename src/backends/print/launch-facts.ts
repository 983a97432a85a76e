/** Names and expressions of a launch that a printer spells differently; collected before printing. */
import { type Expr, THREAD_AXES } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { Launch } from '../../ir/statements/loops.ts'
import { exprsOf, stmtsOf, walkStmts } from '../../ir/statements/tree.ts'

/**
 * Names that hold 64-bit indices, if the type `index` has 64 bits: loops, hardware axes that C prints as loops, `let`s of type
 * `index`, and registers that are loaded as `index`.
 */
export function indexNames(launch: Launch): Set<string> {
  const names = new Set<string>([...THREAD_AXES, ...loopsOf(launch.body).map((l) => l.var)])
  for (const s of stmtsOf(launch.body, 'let')) if (s.dtype === 'index') names.add(s.name)
  const registers = allocatedNames(launch.body, 'register')
  const addRegisters = (e: Expr): void => {
    if (e.kind === 'load' && e.dtype === 'index' && registers.has(e.buffer)) names.add(e.buffer)
    children(e).forEach(addRegisters)
  }
  walkStmts(launch.body, (s) => exprsOf(s).forEach(addRegisters))
  return names
}

/**
 * Sums and products in named addresses that may overflow in iterations excluded by a guard: the address is computed before the
 * guard, and a split may add rows beyond the buffer.
 */
export function speculativeNodes(launch: Launch): ReadonlySet<Expr> {
  const out = new Set<Expr>()
  const visit = (e: Expr): boolean => {
    if (e.kind !== 'binary' || e.dtype !== 'index') return false
    const mayOverflow =
      e.op === 'mul'
        ? e.a.kind !== 'const' && e.b.kind !== 'const'
        : (e.op === 'add' || e.op === 'sub') && [visit(e.a), visit(e.b)].includes(true)
    if (mayOverflow) out.add(e)
    return mayOverflow
  }
  for (const s of stmtsOf(launch.body, 'let')) visit(s.value)
  return out
}

export const atomicBuffers = ({ body }: Launch): ReadonlySet<string> =>
  new Set(stmtsOf(body, 'reduce').flatMap((s) => (s.atomic ? s.targets.map((t) => t.buffer) : [])))

export const vectorBuffers = ({ body }: Launch): ReadonlySet<string> =>
  new Set([
    ...stmtsOf(body, 'vector_load').map((s) => s.load.buffer),
    ...stmtsOf(body, 'vector_store').map((s) => s.target.buffer),
  ])
