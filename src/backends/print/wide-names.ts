/** The names of a launch that hold 64-bit indices, if the type `index` has 64 bits. */
import { type Expr, THREAD_AXES } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import type { Launch } from '../../ir/statements/loops.ts'
import { exprsOf, walkStmts } from '../../ir/statements/tree.ts'

/** Loops, hardware axes that C prints as loops, `let`s of type `index`, and registers that are loaded as `index`. */
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
