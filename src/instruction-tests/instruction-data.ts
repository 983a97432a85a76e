/** Parts of instruction tests: names, data, and the kernel with its schedule. */
import type { Kernel } from '../api/kernels/kernel.ts'
import { SptProgram } from '../api/programs/program.ts'
import { int } from '../ir/expressions/expr.ts'
import type { Instr } from '../ir/instructions/instr.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import { Random } from '../run/bind/sources/random-tensors.ts'
import type { Inputs } from '../run/bind/types.ts'
import { programOf } from '../schedule/steps/language.ts'
import type { LoopStep } from '../schedule/steps/step-data.ts'
import { encoder, newValues, type Tensor } from '../storage/tensor.ts'

export interface InstructionTest {
  readonly kernel: Kernel
  readonly inputs: Inputs
}

/** The array that stores an operand in an instruction test. */
export interface TestArray {
  readonly name: string
  readonly dtype: Dtype
  readonly role: 'in' | 'out' | 'inout'
  readonly shape: readonly number[]
  /** For arrays of indices: their exclusive upper bound, and the length of ascending runs. Undefined for other arrays. */
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
      { ascending, ...(below !== undefined && { below: int(below) }) },
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

/** Largest absolute value in test arrays. */
export const LARGEST = 3

/** Integers from -3 to 3, so that sums are exact in any order; 1 and -1 for products. */
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

/** Random indices below `below`, strictly ascending within groups of `run`. */
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

/** Upper bound on indices if no other is known. */
const MANY = 64
