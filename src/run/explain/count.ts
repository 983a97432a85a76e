/** Counts the work of all threads of a launch, for the sizes and index arrays of a binding. */
import { gcd } from '../../analysis/integers/divisors.ts'
import { THREAD_AXES, type ThreadAxis } from '../../ir/expressions/expr.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import { accessedBy } from '../../ir/statements/accesses.ts'
import type { Buffer, Kernel3, Launch } from '../../ir/statements/loops.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { Certainty, Operations } from './explanation.ts'
import { relevantNames, StatementCounter } from './statement-counter.ts'
import { actionOf, Counters, type Frame, type Numbers } from './work-counters.ts'

/** Maximum number of simulated iterations and threads per launch, about one second. */
const MOST_STEPS = 2 ** 23

/** Sizes of a binding, and its arrays with known values, by name. */
interface KnownData {
  readonly params: ReadonlyMap<string, number>
  readonly arrays: ReadonlyMap<string, Numbers>
}

export interface Counted {
  /** Accessed elements, by array. */
  readonly arrays: ReadonlyMap<
    string,
    { readonly loads: number; readonly stores: number; readonly atomics: number }
  >
  /** Bytes of shared memory that all threads load and store. */
  readonly shared: { readonly loaded: number; readonly stored: number }
  readonly operations: Operations
  readonly grid: readonly [number, number, number]
  readonly certainty: Certainty
}

/** Arrays with known values: the plan does not write them, and their elements decode to numbers. */
export function knownArrays(plan: Kernel3, arrays: KnownData['arrays']): Map<string, Numbers> {
  const written = new Set<string>()
  for (const step of plan.steps) for (const b of accessedBy(step).writes) written.add(b)
  const out = new Map<string, Numbers>()
  for (const b of plan.buffers) {
    const values = arrays.get(b.name)
    // Half-precision floats are stored as raw bits.
    if (values && !written.has(b.name) && b.dtype !== 'f16' && b.dtype !== 'bf16') out.set(b.name, values)
  }
  return out
}

/** Counts the work of a launch. `given.arrays`: the result of `knownArrays`; `most`: limit on simulated steps. */
export function countLaunch(
  launch: Launch,
  buffers: readonly Buffer[],
  given: KnownData,
  instrs: ReadonlyMap<string, Instr>,
  most = MOST_STEPS,
): Counted {
  const counters = new Counters()
  for (const b of buffers) counters.buffers.set(b.name, b)
  const relevant = relevantNames(launch.body)
  const run = actionOf(new StatementCounter(counters, relevant, instrs).body(launch.body))
  const counts = new Float64Array(counters.size)
  const grid = launch.grid.map((e) => Math.max(0, evaluate(e, given.params))) as [number, number, number]
  const extents = [...grid, ...launch.block]
  const axes = THREAD_AXES.map((axis, k) => ({ axis, extent: extents[k]! }))
  const sampled = axes.filter((a) => relevant.has(a.axis))
  const copies = axes.filter((a) => !relevant.has(a.axis)).reduce((n, a) => n * a.extent, 1)
  const frame: Frame = {
    vars: new Map(given.params),
    registers: new Map(),
    arrays: given.arrays,
    steps: 0,
    assumed: false,
  }
  const share = follow(sampled, frame, most, () => run(frame, copies, counts))
  const scale = share === 0 ? 0 : 1 / share
  const read = (name: Parameters<Counters['read']>[1]): number => counters.read(counts, name) * scale
  const arrays = buffers.map(
    (b) =>
      [
        b.name,
        {
          loads: read(`loads ${b.name}`),
          stores: read(`stores ${b.name}`),
          atomics: read(`atomics ${b.name}`),
        },
      ] as const,
  )
  return {
    arrays: new Map(arrays.filter(([, a]) => a.loads + a.stores + a.atomics > 0)),
    shared: { loaded: read('shared loads'), stored: read('shared stores') },
    operations: {
      scalar: read('plain'),
      matrix16: read('matrix16'),
      matrix32: read('matrix32'),
      matrixOther: read('matrixOther'),
    },
    grid,
    certainty: { sampledFraction: share, hasAssumptions: frame.assumed },
  }
}

/**
 * Calls `run` for the values of the hardware indices, in an order that samples them evenly (steps of the golden section, coprime to their
 * number), until `most` steps. Returns the visited fraction.
 */
function follow(
  axes: readonly { readonly axis: ThreadAxis; readonly extent: number }[],
  frame: Frame,
  most: number,
  run: () => void,
): number {
  const total = axes.reduce((n, a) => n * a.extent, 1)
  if (total === 0) return 1
  const step = stepFor(total)
  let at = 0
  let visited = 0
  for (; visited < total && frame.steps < most; visited++) {
    let rest = at
    for (const { axis, extent } of axes) {
      frame.vars.set(axis, rest % extent)
      rest = Math.floor(rest / extent)
    }
    frame.steps++
    run()
    at = (at + step) % total
  }
  return visited / total
}

function stepFor(total: number): number {
  let step = Math.max(1, Math.round(total * 0.6180339887498949))
  while (gcd(step, total) !== 1) step++
  return step
}
