/**
 * Check of a kernel under a schedule at every stage: lowered for each target with verifiers, and run on small random data by the
 * interpreters of Stages II and III. Results must agree with the reference. Loaded on demand only.
 */

import {
  InternalError,
  inPass,
  invariant,
  resultOrError,
  SptError,
} from '../../ast/diagnostics/diagnostic.ts'
import { TARGETS } from '../../backends/targets/index.ts'
import { type Cells, poisonValue } from '../../interpret/memory-cells.ts'
import { interpret, type Order } from '../../interpret/stage2.ts'
import { interpretPlan } from '../../interpret/stage3.ts'
import { groupBy } from '../../ir/memoize.ts'
import type { Buffer, Kernel2, Kernel3 } from '../../ir/statements/loops.ts'
import { someStmt } from '../../ir/statements/tree.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { convert } from '../../ir/values/numeric.ts'
import { unpackFields } from '../../ir/values/packed-fields.ts'
import type { LowerOptions } from '../../lower/passes.ts'
import type { Bound } from '../../run/bind/index.ts'
import { buffersOf, readTensor } from '../../run/bind/results/gather-results.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { overflowIn } from '../../run/execution/overflow-error.ts'
import { compareOutput } from '../../run/verify/compare-outputs.ts'
import { decoder, encoder, newValues, type Tensor, type ValueArray } from '../../storage/tensor.ts'
import { smallData } from '../inputs/small-data.ts'
import { titleOf } from './stage-verifier.ts'

// Execution of a bound kernel by the interpreters of Stages II and III.

/** Row-major elements of every buffer, by name. */
export type Memory = ReadonlyMap<string, Cells>

/** Returns the memory after running the loops, with bound loops in this order. Throws InternalError like `interpret`. */
export function runLoops(loops: Kernel2, bound: Bound, order: Order): Memory {
  const memory = memoryOf(loops.buffers, bound)
  interpret(loops, memory, bound.params, order)
  return memory
}

/** Returns the memory after running the launches. Throws InternalError like `interpretPlan`. */
export function runLaunches(plan: Kernel3, bound: Bound): Memory {
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

/** Lowering options to check: those of the targets, and of a device with subgroups whose barriers are per block (4 lanes, the fewest). */
const WAYS: ReadonlyMap<string, LowerOptions> = new Map<string, LowerOptions>([
  ...[...groupBy(Object.entries(TARGETS), ([, { lowering }]) => JSON.stringify(lowering)).values()].map(
    (equal) => [equal.map(([name]) => name).join('/'), equal[0]![1].lowering] as const,
  ),
  ['subgroups', { lanes: 4, together: true }],
])

export interface StageCheck {
  /** Stages that ran: `loops` (Stage II), and plans (Stage III) by target. */
  readonly ran: readonly string[]
  /** Stages that were skipped, by reason. */
  readonly skipped: ReadonlyMap<string, readonly string[]>
}

/** Checks all stages. Throws InternalError for the first stage that differs from the reference, or breaks an invariant. */
export function checkStages(c: Compilation): StageCheck {
  const ran = new Set<string>()
  const skipped = new Map<string, string[]>()
  const skip = (what: string, why: string): void => {
    const known = skipped.get(why) ?? []
    if (!known.includes(what)) skipped.set(why, [...known, what])
  }
  const plans = new Map<string, Kernel3>()
  for (const [way, options] of WAYS) {
    const plan = resultOrError(() => c.planFor(options))
    if (plan instanceof SptError) skip(way, messageOf(plan))
    else plans.set(way, plan)
  }
  const data = smallData(c)
  if (data instanceof SptError) {
    for (const what of ['loops', ...plans.keys()]) skip(what, messageOf(data))
    return { ran: [], skipped }
  }
  const { bound, expected } = data
  // After an overflow, results are incomplete.
  const compare = (what: string, how: string, run: () => Memory): void =>
    inPass(how, () => {
      const memory = run()
      const noRoom = overflowIn({ ...c.loops, kernel: c.loops.name }, memory, bound.params)
      if (noRoom) return skip(what, messageOf(noRoom))
      let [compared, undecided] = [0, 0]
      for (const [name, want] of Object.entries(expected.buffers)) {
        const c = compareOutput(name, outputIn(memory, bound, name), want, null)
        if (c.problem) throw new InternalError(c.problem)
        compared += c.compared
        undecided += c.undecided
      }
      if (compared === 0 && undecided > 0)
        skip(what, 'every element is decided by rounding: none was compared')
      else ran.add(what)
    })
  for (const order of ['forward', 'backward'] as const)
    compare('loops', `${titleOf(2, c.place)}, run ${order} on small data`, () =>
      runLoops(c.loops, bound, order),
    )
  for (const [way, plan] of plans)
    if (callsInstructions(plan)) skip(way, 'instructions run on devices alone')
    else compare(way, `${titleOf(3, c.place)} for ${way}, run on small data`, () => runLaunches(plan, bound))
  return { ran: [...ran], skipped }
}

const messageOf = (e: SptError): string => e.diagnostics[0]!.message

const callsInstructions = (plan: Kernel3): boolean =>
  plan.steps.some((step) => step.kind === 'launch' && someStmt(step.body, (s) => s.kind === 'instr'))
