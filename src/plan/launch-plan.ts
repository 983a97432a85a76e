/**
 * A plan in memory, as `run` executes it: the serialised plan (`schema.ts`) with the kernel and the modules that devices and binding take.
 * It is made from Stage III when a kernel is compiled, or read from JSON (`read.ts`); the two are equal except for source locations.
 */
import { type RangeCheck, rangeChecks } from '../analysis/integers/range-checks.ts'
import { sharedTemporaries } from '../analysis/loops/temporary-memory.ts'
import type { ArgSpec, Entry } from '../backends/module.ts'
import { targetOf } from '../backends/target.ts'
import type { ModuleText } from '../backends/targets/index.ts'
import { sectionsOf } from '../ir/coordinates/rounds.ts'
import type { Kernel1, Param } from '../ir/coordinates/stage1.ts'
import { bodyVisiting, visitedAxes } from '../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { memoize } from '../ir/memoize.ts'
import { accessedBy } from '../ir/statements/accesses.ts'
import type { Branches, Buffer, Kernel3, Launch } from '../ir/statements/loops.ts'
import { walkStmts } from '../ir/statements/tree.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import type { PackedPlan } from '../lower/launches/buffer-packing.ts'
import { expr } from './expressions.ts'
import type {
  Expression,
  PackedArray,
  Plan,
  PlanArgument,
  PlanBranches,
  PlanBuffer,
  PlanLaunch,
  PlanRounds,
  PlanSize,
  PlanStep,
} from './schema.ts'

export interface LaunchPlan
  extends Omit<Plan, 'schema' | 'modules' | 'binding' | 'runtimeFormats' | 'packed' | 'facts' | 'precision'> {
  /** The kernel over coordinates by which data is bound; its iterations have no statements. */
  readonly binding: Kernel1
  readonly packed: readonly PackedArray[]
  readonly texts: readonly ModuleText[]
  readonly checks: readonly RangeCheck[]
  readonly facts?: Kernel3['facts']
  readonly runtimeLists?: Kernel3['runtimeLists']
  /** The fewest mantissa bits that instructions keep of a factor; all if undefined. */
  readonly precision?: number | undefined
}

/** The fields of a plan by which sizes are checked. */
export type CheckedPlan = Pick<LaunchPlan, 'kernel' | 'buffers' | 'facts' | 'checks'>

/** Stage III with its range checks. */
export const checkedPlan = (stage3: Kernel3): CheckedPlan => ({
  kernel: stage3.name,
  buffers: stage3.buffers.map((b) => planBuffer(b)),
  facts: stage3.facts,
  checks: rangeChecks(stage3),
})

interface Compiled
  extends Pick<LaunchPlan, 'schedule' | 'device' | 'index' | 'needs' | 'texts' | 'unorderedSums'>,
    Pick<PackedPlan, 'arenas'> {
  readonly kernel: Kernel1
  readonly stage3: Kernel3
  /** Types whose elements occupy a 32-bit word. */
  readonly words: readonly Dtype[]
}

/** Returns the plan of compiled code. The entries of `texts` are in the order of the launches. */
export function launchPlan({ kernel, stage3, arenas, words, ...compiled }: Compiled): LaunchPlan {
  const { name, params, buffers, facts, lostWrites, runtimeLists, branches } = stage3
  const globals = new Set(buffers.map((b) => b.name))
  const shared = sharedTemporaries(stage3)
  const memoryOf = (name: string): string => shared.get(name) ?? name
  const texts = compiled.texts.map((t) => ({
    ...t,
    entries: t.entries.map((e) => ({ ...e, args: e.args.map((a) => argumentIn(a, memoryOf)) })),
  }))
  const modules = texts.flatMap((t, module) => t.entries.map((entry) => ({ module, entry })))
  const global = (names: Iterable<string>): string[] =>
    [...new Set([...names].map(memoryOf))].filter((b) => globals.has(b))
  let next = 0
  const steps = stage3.steps.flatMap((step): readonly PlanStep[] => {
    if (step.kind === 'rounds') return []
    if (step.kind === 'clear') return [{ clear: memoryOf(step.buffer) }]
    const { module, entry } = modules[next++]!
    return [launchOf(step, module, entry, global)]
  })
  const rounds = roundsIn(stage3)
  const packed = arenas.flatMap((a) =>
    a.members.map((m) => ({
      ...planBuffer(m.buffer, words),
      in: a.buffer.name,
      base: m.base,
      at: data(m.offset),
    })),
  )
  const bases = new Set(packed.map((p) => p.base))
  const sizeOf = ({ name, measured }: Param): PlanSize => {
    if (bases.has(name)) return { name, from: 'packed' }
    if (!kernel.params.some((p) => p.name === name)) return { name, from: 'counted' }
    return { name, from: measured ? 'measured' : 'caller' }
  }
  return {
    ...compiled,
    texts,
    kernel: name,
    target: targetOf({ kind: compiled.device }),
    binding: withoutStatements(kernel),
    sizes: params.flatMap((p) => (p.kind === 'size' ? [sizeOf(p)] : [])),
    scalars: params.flatMap(({ name, kind, dtype }) => (kind === 'scalar' ? [{ name, dtype }] : [])),
    buffers: buffers.filter((b) => !shared.has(b.name)).map((b) => planBuffer(b, words)),
    packed,
    steps,
    ...(rounds.length > 0 && { rounds }),
    ...(branches && { branches: branchesOf(branches) }),
    checks: rangeChecks(stage3),
    ...(lostWrites && { lostWrites }),
    facts,
    runtimeLists,
    precision: precisionOf(stage3),
  }
}

const branchesOf = ({ fillRatios, ...branches }: Branches): PlanBranches => ({
  ...(branches as PlanBranches),
  fillRatios: fillRatios.map((r) => ({ ...r, elements: data(r.elements) })),
})

/** The rounds, by indices in the list of steps without edges. */
function roundsIn({ steps }: Kernel3): readonly PlanRounds[] {
  let at = 0
  return sectionsOf(steps).flatMap((s): readonly PlanRounds[] => {
    const from = at
    at += s.kind === 'section' ? s.body.length : 1
    if (s.kind !== 'section') return []
    const { name, count, flag } = s.rounds
    return [
      {
        name,
        from,
        to: at,
        ...(count && { count: data(count) }),
        ...(flag !== undefined && { while: flag }),
      },
    ]
  })
}

const data = (e: Expr): Expression => expr.write(e) as Expression

export const planBuffer = (
  { name, dtype, role, shape }: Buffer,
  words: readonly Dtype[] = [],
): PlanBuffer => ({
  name,
  dtype,
  role,
  length: data(shape[0]!),
  storage: words.includes(dtype) ? 'word' : 'native',
})

function launchOf(
  step: Launch,
  module: number,
  entry: Entry,
  global: (names: Iterable<string>) => string[],
): PlanLaunch {
  const { grid, when } = step
  const [x, y, z] = grid
  const { reads, writes } = accessedBy(step)
  return {
    launch: entry.name,
    module,
    grid: [data(x), data(y), data(z)],
    block: entry.block,
    ...(entry.sharedBytes > 0 && { shared: entry.sharedBytes }),
    ...(entry.cluster && { cluster: entry.cluster }),
    ...(entry.waits && { waits: true }),
    ...(entry.place !== undefined && { place: entry.place }),
    args: entry.args.map(argumentOf),
    ...(when && { when: { ...when } as NonNullable<PlanLaunch['when']> }),
    reads: global(reads),
    writes: global(writes),
  }
}

/** An argument, with the buffer that owns the memory. */
function argumentIn(a: ArgSpec, memoryOf: (name: string) => string): ArgSpec {
  if (a.kind === 'scalar') return a
  return a.kind === 'buffer' ? { ...a, name: memoryOf(a.name) } : { ...a, buffer: memoryOf(a.buffer) }
}

function argumentOf(a: ArgSpec): PlanArgument {
  if (a.kind === 'buffer') return { buffer: a.name, dtype: a.dtype, access: a.access }
  if (a.kind === 'scalar') return { scalar: a.name, dtype: a.dtype }
  const { rows, columns, box, swizzle } = a.matrix
  return {
    matrix: a.name,
    of: a.buffer,
    dtype: a.dtype,
    rows: data(rows),
    columns: data(columns),
    box,
    swizzle,
  }
}

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
