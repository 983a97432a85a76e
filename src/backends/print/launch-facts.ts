/** Names and expressions of a launch that a printer spells differently; collected before printing. */
import { type Expr, THREAD_AXES } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import type { Launch } from '../../ir/statements/loops.ts'
import { exprsOf, walkStmts } from '../../ir/statements/tree.ts'

/**
 * Names that hold 64-bit indices, if the type `index` has 64 bits: loops, hardware axes that C prints as loops, `let`s of type
 * `index`, and registers that are loaded as `index`.
 */
export function indexNames(launch: Launch): Set<string> {
  const names = new Set<string>(THREAD_AXES)
  const registers = new Set<string>()
  walkStmts(launch.body, (s) => {
    if (s.kind === 'for') names.add(s.var)
    if (s.kind === 'let' && s.dtype === 'index') names.add(s.name)
    if (s.kind === 'alloc' && s.buffer.scope === 'register') registers.add(s.buffer.name)
  })
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
  walkStmts(launch.body, (s) => {
    if (s.kind === 'let') visit(s.value)
  })
  return out
}

export function atomicBuffers(launch: Launch): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(launch.body, (s) => {
    if (s.kind === 'reduce' && s.atomic) for (const t of s.targets) out.add(t.buffer)
  })
  return out
}

export function vectorBuffers(launch: Launch): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(launch.body, (s) => {
    if (s.kind === 'vector_load') out.add(s.load.buffer)
    if (s.kind === 'vector_store') out.add(s.target.buffer)
  })
  return out
}
