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
  /** Where elements are indices: what they are below, and how many neighbours ascend. */
  readonly below?: number | undefined
  readonly ascending?: number | undefined
}

export function testOf(
  instr: Instr,
  text: string,
  steps: readonly LoopStep[],
  arrays: readonly TestArray[],
  seed: number,
): InstructionTest {
  const known = new Map(
    arrays.map(({ name, below, ascending }) => [
      name,
      { ascending, ...(below === undefined ? {} : { below: int(below) }) },
    ]),
  )
  const kernel = new SptProgram(programOf({ name: `${instr.name}.spt`, text }), { known })
    .kernel()
    .apply(steps.map((step) => ({ stage: 2, step })))
  const random = new Random(seed)
  const unit = instr.body.kind === 'reduce' && instr.body.reducer.name === '*'
  const tensors = arrays.flatMap(({ name, dtype, role, shape, below, ascending }): [string, Tensor][] => {
    if (role === 'out') return []
    const indices = (below ?? ascending) !== undefined
    const values = indices
      ? drawnIndices(shape, random, below, ascending)
      : integers(dtype, shape, random, unit)
    return [[name, { kind: 'dense', shape, values, dtype }]]
  })
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

/** Numbers below an end, of which each so many neighbours ascend. */
function drawnIndices(shape: readonly number[], random: Random, below = MANY, run = 1): Int32Array {
  const out = new Int32Array(shape.reduce((a, b) => a * b, 1))
  for (let first = 0; first < out.length; first += run) {
    const left = Array.from({ length: below }, (_, x) => x)
    const own = Array.from({ length: run }, () => left.splice(random.below(left.length), 1)[0]!)
    out.set(
      own.sort((a, b) => a - b),
      first,
    )
  }
  return out
}

/** Numbers to draw from where no end is known. */
const MANY = 64
