import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { LOOP_EXAMPLES } from '../support/step-examples.ts'

describe('the example of every primitive is legal', () => {
  for (const [word, { program, given = '', steps }] of Object.entries(LOOP_EXAMPLES))
    test(word, () => {
      const loops = (text: string) =>
        parseProgram(`${program}\nschedule k.s { ${text} }`).kernel('k').schedule('s').compilation.loops
      const [before, after] = [loops(given), loops(`${given}\n${steps}`)]
      verify2(before)
      verify2(after)
      if (word !== 'as_written') expect(printBody(after.body)).not.toBe(printBody(before.body))
    })
})
