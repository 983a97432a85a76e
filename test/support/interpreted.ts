/** Schedules that no device here runs, statement by statement. */
import { bindInputs, type Inputs } from '../../src/bind/index.ts'
import { decoder } from '../../src/formats/values.ts'
import { evaluate } from '../../src/ir/evaluate.ts'
import { interpret } from '../../src/ir/interpret.ts'
import type { Kernel } from '../../src/node.ts'

/** What is in memory after the loops, whose outputs begin as NaN. */
export function interpreted({ compilation }: Kernel, inputs: Inputs): ReadonlyMap<string, readonly number[]> {
  const bound = bindInputs(compilation.kernel, inputs)
  const memory = new Map(
    compilation.loops.buffers.map((buffer) => {
      const values = bound.arrays.get(buffer.name)
      const read = decoder(buffer.dtype)
      const count = buffer.shape.reduce((k, e) => k * evaluate(e, bound.params), 1)
      return [
        buffer.name,
        values ? Array.from(values, (x) => (read ? read(x) : x)) : Array<number>(count).fill(Number.NaN),
      ]
    }),
  )
  interpret(compilation.loops, memory, bound.params, 'backward')
  return memory
}
