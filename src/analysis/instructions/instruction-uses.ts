/** Returns the instructions that the loops of a kernel are mapped to (`tensorize`), by name. */
import type { Instr } from '../../ir/instructions/instr.ts'
import type { Kernel2 } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'

export function instructionsOf(kernel: Kernel2): ReadonlyMap<string, Instr> {
  const out = new Map<string, Instr>()
  walkStmts(kernel.body, (s) => {
    if (s.kind === 'for' && s.mode.kind === 'instr') out.set(s.mode.instr.name, s.mode.instr)
  })
  return out
}
