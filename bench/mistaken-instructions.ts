/** Wrong declarations of instructions, for which the generated tests must fail. */
import { add, int, mod, variable } from '../src/ir/expressions/expr.ts'
import { substitute } from '../src/ir/expressions/expr-tree.ts'
import { type Instr, type Memory, SLOT } from '../src/ir/instructions/instr.ts'

/** The declaration with the elements of one register memory moved to other slots, for which a test must fail. */
export function mistaken(instr: Instr, operand: string): Instr {
  const moved = (m: Memory): Memory => {
    const next = mod(add(variable(SLOT), int(1)), int(m.size))
    const element = m.element.map((e) => substitute(e, new Map([[SLOT, next]])))
    return { ...m, name: `${m.name}_moved`, element }
  }
  return {
    ...instr,
    operands: instr.operands.map((o) =>
      o.name === operand && o.memory?.scope === 'register' ? { ...o, memory: moved(o.memory) } : o,
    ),
  }
}

/** The operands of an instruction in register memories with several elements. */
export const movable = (instr: Instr): readonly string[] =>
  instr.operands.flatMap((o) => (o.memory?.scope === 'register' && o.memory.size > 1 ? [o.name] : []))
