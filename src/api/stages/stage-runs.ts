/** Execution of a bound kernel by the interpreters of Stages II and III. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { type Cells, poisonValue } from '../../interpret/memory-cells.ts'
import { interpret, type Order } from '../../interpret/stage2.ts'
import { interpretPlan } from '../../interpret/stage3.ts'
import type { Buffer, Kernel2, Plan } from '../../ir/statements/loops.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { convert } from '../../ir/values/numeric.ts'
import { unpackFields } from '../../ir/values/packed-fields.ts'
import type { Bound } from '../../run/bind/index.ts'
import { buffersOf, readTensor } from '../../run/bind/results/gather-results.ts'
import type { Tensor, ValueArray } from '../../storage/tensor.ts'
import { decoder, encoder, newValues } from '../../storage/values.ts'

/** Row-major elements of every buffer, by name. */
export type Memory = ReadonlyMap<string, Cells>

/** Returns the memory after running the loops, with bound loops in this order. Throws InternalError like `interpret`. */
export function runLoops(loops: Kernel2, bound: Bound, order: Order): Memory {
  const memory = memoryOf(loops.buffers, bound)
  interpret(loops, memory, bound.params, order)
  return memory
}

/** Returns the memory after running the launches. Throws InternalError like `interpretPlan`. */
export function runLaunches(plan: Plan, bound: Bound): Memory {
  const memory = memoryOf(plan.buffers, bound)
  interpretPlan(plan, memory, bound.params)
  return memory
}

/** Returns an output in the caller's coordinates. */
export function outputIn(memory: Memory, bound: Bound, name: string): Tensor {
  const stored = new Map<string, ValueArray>()
  for (const part of buffersOf(bound.kernel, name)) {
    const { dtype, accumulate } = bound.kernel.buffers.find((b) => b.name === part)!
    const cells = memory.get(part)!
    const values = newValues(dtype, cells.length)
    const write = encoder(dtype)
    // In Stage II, elements have the type in which they are accumulated.
    const settled = convert(accumulate, dtype)
    for (let k = 0; k < cells.length; k++) {
      const x = accumulate === dtype ? cells[k]! : settled(cells[k]!)
      values[k] = write ? write(x, k) : x
    }
    stored.set(part, values)
  }
  return readTensor(bound, name, stored)
}

/** Returns bound values as numbers, and poison in other buffers, so that unwritten elements are detected. */
export function memoryOf(buffers: readonly Buffer[], bound: Bound): Map<string, Cells> {
  const out = new Map<string, Cells>()
  for (const b of buffers) {
    const n = b.shape.reduce((size, e) => size * Math.max(0, evaluate(e, bound.params)), 1)
    const given = bound.arrays.get(b.name)
    const read = decoder(b.dtype)
    const cells = given
      ? Array.from(b.packed === undefined ? given : unpackFields(given, b.packed, n), (x) =>
          read ? read(x) : x,
        )
      : new Array<number>(n).fill(poisonValue(b.dtype))
    invariant(cells.length === n, `${b.name} is bound to ${cells.length} elements, not ${n}`)
    out.set(b.name, cells)
  }
  return out
}
