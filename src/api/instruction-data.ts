/** What tests of instructions are made of: names, data, and the kernel with its schedule. */

import type { Dtype } from '../ir/dtype.ts'
import type { Instr } from '../ir/instr.ts'
import { Random } from '../run/bind/random-tensors.ts'
import type { Inputs } from '../run/bind/types.ts'
import type { LoopStep } from '../schedule/steps.ts'
import type { Tensor } from '../storage/tensor.ts'
import { encoder, newValues } from '../storage/values.ts'
import type { Kernel } from './kernel.ts'
import { parseProgram } from './program.ts'

export interface InstructionTest {
  readonly kernel: Kernel
  readonly inputs: Inputs
}

/** An operand's. */
export interface TestArray {
  readonly name: string
  readonly dtype: Dtype
  readonly role: 'in' | 'out' | 'inout'
  readonly shape: readonly number[]
}

export function testOf(
  instr: Instr,
  text: string,
  steps: readonly LoopStep[],
  arrays: readonly TestArray[],
  seed: number,
): InstructionTest {
  const kernel = parseProgram(text, `${instr.name}.spt`)
    .kernel()
    .apply(steps.map((step) => ({ stage: 2, step })))
  const random = new Random(seed)
  const unit = instr.body.kind === 'reduce' && instr.body.reducer.name === '*'
  const tensors = arrays.flatMap(({ name, dtype, role, shape }): [string, Tensor][] =>
    role === 'out'
      ? []
      : [[name, { kind: 'dense', shape, values: integers(dtype, shape, random, unit), dtype }]],
  )
  return { kernel, inputs: { tensors: Object.fromEntries(tensors) } }
}

/** Of the numbers in arrays. */
export const LARGEST = 3

/** Whole numbers from -3 to 3, so that every sum is exact in any order; where they are multiplied, 1 and -1. */
function integers(dtype: Dtype, shape: readonly number[], random: Random, unit: boolean) {
  const length = shape.reduce((a, b) => a * b, 1)
  const out = newValues(dtype, length)
  const write = encoder(dtype)
  const unsigned = dtype === 'u32' || dtype === 'u8' || dtype === 'bool'
  for (let k = 0; k < length; k++) {
    const any = unsigned ? random.below(2) : random.below(2 * LARGEST + 1) - LARGEST
    const x = !unit ? any : unsigned ? 1 : 2 * random.below(2) - 1
    out[k] = write ? write(x, k) : x
  }
  return out
}
