/** What tests of instructions are made of: names, data, and the kernel with its schedule. */

import type { Dtype } from '../ir/dtype.ts'
import { int } from '../ir/expr.ts'
import type { Instr } from '../ir/instr.ts'
import { Random } from '../run/bind/random-tensors.ts'
import type { Inputs } from '../run/bind/types.ts'
import { programOf } from '../schedule/language.ts'
import type { LoopStep } from '../schedule/steps.ts'
import type { Tensor } from '../storage/tensor.ts'
import { encoder, newValues } from '../storage/values.ts'
import type { Kernel } from './kernel.ts'
import { SptProgram } from './program.ts'

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
  /** Where elements are indices: what they are below. */
  readonly below?: number | undefined
}

export function testOf(
  instr: Instr,
  text: string,
  steps: readonly LoopStep[],
  arrays: readonly TestArray[],
  seed: number,
): InstructionTest {
  const below = new Map(
    arrays.flatMap((a) => (a.below === undefined ? [] : [[a.name, int(a.below)] as const])),
  )
  const kernel = new SptProgram(programOf({ name: `${instr.name}.spt`, text }), { below })
    .kernel()
    .apply(steps.map((step) => ({ stage: 2, step })))
  const random = new Random(seed)
  const unit = instr.body.kind === 'reduce' && instr.body.reducer.name === '*'
  const tensors = arrays.flatMap(({ name, dtype, role, shape, below }): [string, Tensor][] =>
    role === 'out'
      ? []
      : [[name, { kind: 'dense', shape, values: integers(dtype, shape, random, { unit, below }), dtype }]],
  )
  return { kernel, inputs: { tensors: Object.fromEntries(tensors) } }
}

/** Of the numbers in arrays. */
export const LARGEST = 3

/** Whole numbers from -3 to 3, so that every sum is exact in any order; where they are multiplied, 1 and -1. Or indices. */
function integers(
  dtype: Dtype,
  shape: readonly number[],
  random: Random,
  { unit, below }: { readonly unit: boolean; readonly below: number | undefined },
) {
  const length = shape.reduce((a, b) => a * b, 1)
  const out = newValues(dtype, length)
  const write = encoder(dtype)
  const unsigned = dtype === 'u32' || dtype === 'u8' || dtype === 'bool'
  for (let k = 0; k < length; k++) {
    if (below !== undefined) {
      out[k] = random.below(below)
      continue
    }
    const any = unsigned ? random.below(2) : random.below(2 * LARGEST + 1) - LARGEST
    const x = !unit ? any : unsigned ? 1 : 2 * random.below(2) - 1
    out[k] = write ? write(x, k) : x
  }
  return out
}
