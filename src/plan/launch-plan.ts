/**
 * A plan in memory, as `run` executes it: buffers, launches and generated code, without statements. It is made from Stage III when a
 * kernel is compiled, or read from JSON (`read.ts`); the two are equal except for source locations.
 */
import { type RangeCheck, rangeChecks } from '../analysis/integers/range-checks.ts'
import type { Entry } from '../backends/module.ts'
import type { DeviceKind } from '../backends/target.ts'
import type { ModuleText } from '../backends/targets/index.ts'
import type { Kernel1, Param } from '../ir/coordinates/stage1.ts'
import { bodyVisiting, visitedAxes } from '../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { memoize } from '../ir/memoize.ts'
import { readsOf, writesOf } from '../ir/statements/accesses.ts'
import type { Buffer, Clear, Kernel3, Launch } from '../ir/statements/loops.ts'
import { walkStmts } from '../ir/statements/tree.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import type { PlanNeeds } from './schema.ts'

/** An array in device memory, of one dimension. */
export type DeviceArray = Pick<Buffer, 'name' | 'dtype' | 'role' | 'shape'>

/** An array that contains read-only arrays. */
export interface PackedArrays {
  readonly buffer: DeviceArray
  readonly members: readonly {
    readonly buffer: DeviceArray
    /** The size that holds the index of the first element, and its value. */
    readonly base: string
    readonly offset: Expr
  }[]
}

export interface LaunchStep {
  readonly kind: 'launch'
  readonly name: string
  readonly grid: Launch['grid']
  readonly entry: Entry
  readonly reads: ReadonlySet<string>
  readonly writes: ReadonlySet<string>
}

export interface LaunchPlan {
  readonly name: string
  readonly schedule: string | null
  readonly device: DeviceKind
  readonly index: 32 | 64
  readonly needs: PlanNeeds
  /** The kernel over coordinates by which data is bound; its iterations have no statements. */
  readonly kernel: Kernel1
  readonly params: readonly Param[]
  readonly buffers: readonly DeviceArray[]
  readonly arenas: readonly PackedArrays[]
  /** Types whose elements occupy a 32-bit word. */
  readonly words: readonly Dtype[]
  readonly texts: readonly ModuleText[]
  readonly steps: readonly (Clear | LaunchStep)[]
  readonly checks: readonly RangeCheck[]
  readonly facts?: Kernel3['facts']
  readonly lostWrites?: Kernel3['lostWrites']
  readonly runtimeLists?: Kernel3['runtimeLists']
  /** The fewest mantissa bits that instructions keep of a factor; all if undefined. */
  readonly precision: number | undefined
}

/** The fields of a plan by which sizes are checked. */
export type CheckedPlan = Pick<LaunchPlan, 'name' | 'buffers' | 'facts' | 'checks'>

/** Stage III with its range checks. */
export const checkedPlan = (stage3: Kernel3): CheckedPlan => ({
  name: stage3.name,
  buffers: stage3.buffers,
  facts: stage3.facts,
  checks: rangeChecks(stage3),
})

interface Compiled
  extends Pick<LaunchPlan, 'schedule' | 'device' | 'index' | 'needs' | 'arenas' | 'words' | 'texts'> {
  readonly kernel: Kernel1
  readonly stage3: Kernel3
}

/** Returns the plan of compiled code. The entries of `texts` are in the order of the launches. */
export function launchPlan({ kernel, stage3, ...compiled }: Compiled): LaunchPlan {
  const { name, params, buffers, facts, lostWrites, runtimeLists } = stage3
  const entries = compiled.texts.flatMap((t) => t.entries)
  let next = 0
  const steps = stage3.steps.map((step): Clear | LaunchStep => {
    if (step.kind === 'clear') return step
    const global = (names: Iterable<string>): ReadonlySet<string> =>
      new Set([...names].filter((b) => buffers.some((x) => x.name === b)))
    return {
      kind: 'launch',
      name: step.name,
      grid: step.grid,
      entry: entries[next++]!,
      reads: global(readsOf(step.body)),
      writes: global(writesOf(step.body)),
    }
  })
  return {
    ...compiled,
    name,
    kernel: withoutStatements(kernel),
    params: ['size', 'scalar'].flatMap((kind) => params.filter((p) => p.kind === kind)),
    buffers: buffers.map(deviceArray),
    arenas: compiled.arenas.map(({ buffer, members }) => ({
      buffer: deviceArray(buffer),
      members: members.map((m) => ({ ...m, buffer: deviceArray(m.buffer) })),
    })),
    steps,
    checks: rangeChecks(stage3),
    facts,
    lostWrites,
    runtimeLists,
    precision: precisionOf(stage3),
  }
}

const deviceArray = ({ name, dtype, role, shape }: DeviceArray): DeviceArray => ({ name, dtype, role, shape })

const withoutStatements = memoize(
  (kernel: Kernel1): Kernel1 => ({ ...kernel, body: bodyVisiting(visitedAxes(kernel)) }),
)

/** Returns the fewest mantissa bits of any product; undefined if every product is exact in its type. */
export function precisionOf(plan: Kernel3): number | undefined {
  let precision: number | undefined
  for (const step of plan.steps)
    if (step.kind === 'launch')
      walkStmts(step.body, (s) => {
        if (s.kind === 'instr' && s.precision !== undefined)
          precision = Math.min(precision ?? 23, s.precision)
      })
  return precision
}
