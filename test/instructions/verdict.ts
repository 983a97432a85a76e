/** What a device says of an instruction that a text declares. */

import { parseProgram } from '../../src/api/programs/program.ts'
import type { InstructionVerifier, Verdict } from '../../src/instruction-tests/instruction-verify.ts'

export function verdictOf(verifier: InstructionVerifier, text: string): Promise<Verdict> {
  const [instr] = parseProgram(text).instructions.values()
  return verifier.verify(instr!)
}
