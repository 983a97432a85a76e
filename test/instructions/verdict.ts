/** What a device says of an instruction that a text declares. */

import type { InstructionVerifier, Verdict } from '../../src/api/instruction-tests/instruction-verify.ts'
import { parseProgram } from '../../src/api/programs/program.ts'

export function verdictOf(verifier: InstructionVerifier, text: string): Promise<Verdict> {
  const [instr] = parseProgram(text).instructions.values()
  return verifier.verify(instr!)
}
