/** Families of plans as JSON: several plans of one kernel, and the conditions over sizes and statistics that select one. */
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { visitedAxes } from '../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { freeVars, readsMemory } from '../ir/expressions/expr-tree.ts'
import type { Instance } from '../ir/formats/format.ts'
import { instance, readKernel, storedKernel } from './binding-codecs.ts'
import { type Codec, count, list, malformed, map, objectAt, oneOf, record, tagged, text } from './codec.ts'
import { expr } from './expressions.ts'
import type { LaunchPlan } from './launch-plan.ts'
import { checkSchema, readPlan } from './read.ts'
import { type Plan, type PlanBinding, type PlanFamily, SCHEMA } from './schema.ts'
import { writePlan } from './write.ts'

interface FamilyBranch {
  readonly when: readonly Expr[]
  /** Call of the schedule: `gpu(8, 32)`. */
  readonly schedule: string
  /** Index of the plan. */
  readonly plan: number
}

const LENGTHS = ['count', 'longest', 'shortest', 'mean', 'empty', 'segments'] as const

/** A statistic of an axis or a tensor `of`. `fill_ratio`: with the arguments of the format. */
export type FamilyStatistic =
  | { readonly kind: (typeof LENGTHS)[number] | 'nnz'; readonly of: string }
  | { readonly kind: 'fill_ratio'; readonly of: string; readonly format: Instance }

/** A family in memory. */
export interface LoadableFamily {
  /** Name of the dispatch with its arguments. */
  readonly schedule: string
  /** The kernel as declared, by which sizes and statistics are computed. */
  readonly kernel: Kernel1
  readonly statistics: ReadonlyMap<string, FamilyStatistic>
  readonly branches: readonly FamilyBranch[]
  readonly plans: readonly LaunchPlan[]
}

const counted = record<{ readonly kind: string; readonly of: string }>({ kind: text, of: text })
const statistic = tagged<FamilyStatistic>('kind', {
  ...Object.fromEntries([...LENGTHS, 'nnz'].map((kind) => [kind, counted as Codec<never>])),
  fill_ratio: record<Extract<FamilyStatistic, { kind: 'fill_ratio' }>>({
    kind: oneOf(['fill_ratio']),
    of: text,
    format: instance,
  }) as Codec<never>,
})

export const familyStatistics = map(statistic)

const selection = record<Omit<LoadableFamily, 'kernel' | 'plans'>>({
  schedule: text,
  statistics: familyStatistics,
  branches: list(record<FamilyBranch>({ when: list(expr), schedule: text, plan: count })),
})

/** True for the JSON of a family. */
export const isFamily = (json: Plan | PlanFamily): json is PlanFamily =>
  typeof json === 'object' && json !== null && 'choose' in json

export function writeFamily({ kernel, plans, ...choose }: LoadableFamily): PlanFamily {
  return {
    schema: SCHEMA,
    kernel: kernel.name,
    choose: {
      ...(selection.write(choose) as Omit<PlanFamily['choose'], 'binding'>),
      binding: storedKernel.write({ ...kernel, visited: visitedAxes(kernel) }) as PlanBinding,
    },
    plans: plans.map(writePlan),
  }
}

const node: Codec<unknown> = { write: (x) => x, read: (x) => x }
const fields = record<{ schema: string; kernel: string; choose: unknown; plans: readonly unknown[] }>({
  schema: oneOf([SCHEMA]),
  kernel: text,
  choose: node,
  plans: list(node),
})

/** Throws SptError `plan/…` as `readPlan`. */
export function readFamily(json: PlanFamily): LoadableFamily {
  checkSchema(json)
  const { choose, plans } = fields.read(json, '')
  const { binding, ...own } = objectAt(choose, 'choose')
  const kernel = readKernel({ binding: binding as PlanBinding }, 'choose')
  const { branches, statistics, schedule } = selection.read(own, 'choose')
  if (branches.length === 0) malformed('choose.branches', branches, 'one branch or more')
  for (const [name, { kind, of }] of statistics) {
    const known = kind === 'nnz' || kind === 'fill_ratio' ? kernel.buffers : kernel.axes
    if (!known.some((x) => x.name === of))
      malformed(`choose.statistics.${name}.of`, of, 'a name of the kernel')
  }
  const names = new Set([...statistics.keys(), ...kernel.params.map((p) => p.name)])
  branches.forEach(({ when, plan }, k) => {
    if (plan >= plans.length)
      malformed(`choose.branches[${k}].plan`, plan, `the index of one of ${plans.length} plans`)
    const at = `choose.branches[${k}].when`
    if (when.some(readsMemory)) malformed(at, when.map(expr.write), 'expressions of sizes and statistics')
    for (const name of when.flatMap((e) => [...freeVars(e)]))
      if (!names.has(name)) malformed(at, name, `one of ${[...names].join(', ')}`)
  })
  return { kernel, schedule, statistics, branches, plans: plans.map((p, k) => readPlan(p, `plans[${k}]`)) }
}
