/**
 * Let insertion for quotients. Invariant established: the expansion of floored division, which repeats the dividend up to three
 * times, has no repeated operands. It runs after every pass that analyses index expressions, because names hide their structure.
 */

import type { HardwareExtents } from '../../analysis/integers/ranges.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import type { Kernel2 } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'
import { flatBuffers } from '../memory/buffer-flattening.ts'
import { lowerIntegerDivision } from './integer-division.ts'
import { insertLets, WRITTEN_OUT } from './let-insertion.ts'

export function insertQuotientLets(
  body: Body,
  kernel: Kernel2,
  names: Names,
  extents: HardwareExtents,
): Body {
  const shared = insertLets(body, flatBuffers(kernel.buffers), names, WRITTEN_OUT)
  // The bounds checks that let insertion adds mention array lengths, which may contain quotients of sizes.
  return lowerIntegerDivision(shared, kernel, extents)
}
