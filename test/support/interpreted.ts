/** Schedules that no device here runs, statement by statement. */

import { interpret } from '../../src/interpret/stage2.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import { evaluate } from '../../src/ir/evaluate.ts'
import type { Buffer } from '../../src/ir/loops.ts'
import type { Kernel } from '../../src/node.ts'
import { type Bound, bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { decoder } from '../../src/storage/values.ts'

/** What is in memory after the loops, whose outputs begin as NaN. */
export function interpreted({ compilation }: Kernel, inputs: Inputs): ReadonlyMap<string, readonly number[]> {
  const bound = bindInputs(compilation.kernel, inputs)
  const memory = memoryOf(compilation.loops.buffers, bound)
  interpret(compilation.loops, memory, bound.params, 'backward')
  return memory
}

/** The same of the plan, where an access outside of an array is an error. */
export function interpretedPlan(
  { compilation }: Kernel,
  inputs: Inputs,
): ReadonlyMap<string, readonly number[]> {
  const bound = bindInputs(compilation.kernel, inputs)
  const memory = memoryOf(compilation.plan.buffers, bound)
  interpretPlan(compilation.plan, memory, bound.params)
  return memory
}

const memoryOf = (buffers: readonly Buffer[], bound: Bound): Map<string, number[]> =>
  new Map(
    buffers.map((buffer) => {
      const values = bound.arrays.get(buffer.name)
      const read = decoder(buffer.dtype)
      const count = buffer.shape.reduce((k, e) => k * evaluate(e, bound.params), 1)
      return [
        buffer.name,
        values ? Array.from(values, (x) => (read ? read(x) : x)) : Array<number>(count).fill(Number.NaN),
      ]
    }),
  )
