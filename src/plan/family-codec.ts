/** Families of plans as JSON: several plans of one kernel, and the conditions over sizes and statistics that select one. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { visitedAxes } from '../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { SIZE_OPERATORS, type SizeExpr } from '../ir/expressions/size-expressions.ts'
import { printExpr1 } from '../ir/print/print-stage1.ts'
import { isFloat } from '../ir/values/dtype.ts'
import { readKernel, storedKernel } from './binding-codecs.ts'
import { type Codec, count, list, malformed, map, objectAt, oneOf, record, text } from './codec.ts'
import type { LaunchPlan } from './launch-plan.ts'
import { sizeExpression } from './plan-codec.ts'
import { checkSchema, readPlan } from './read.ts'
import { type Plan, type PlanBinding, type PlanFamily, type PlanStatistic, SCHEMA } from './schema.ts'
import { writePlan } from './write.ts'

export interface FamilyBranch {
  readonly when: readonly SizeExpr[]
  /** Call of the schedule: `gpu(8, 32)`. */
  readonly schedule: string
  /** Index of the plan. */
  readonly plan: number
}

/** A family in memory. */
export interface LoadableFamily {
  /** Name of the dispatch with its arguments. */
  readonly schedule: string
  /** The kernel as declared, by which sizes and statistics are computed. */
  readonly kernel: Kernel1
  readonly statistics: ReadonlyMap<string, PlanStatistic>
  readonly branches: readonly FamilyBranch[]
  readonly plans: readonly LaunchPlan[]
}

/** The value of an expression as a `SizeExpr`, in exact arithmetic; `null` if it needs rounding or functions. */
function writeCondition(e: Expr): SizeExpr | null {
  const parts = (...xs: readonly Expr[]): readonly SizeExpr[] | null => {
    const written = xs.map(writeCondition)
    return written.some((x) => x === null) ? null : (written as SizeExpr[])
  }
  const applied = (op: string, operands: readonly SizeExpr[] | null): SizeExpr | null =>
    operands && [op, ...operands]
  switch (e.kind) {
    case 'const':
      return e.value
    case 'var':
      return e.name
    case 'unary':
      return applied(e.op, parts(e.x))
    case 'binary':
      return e.op in SIZE_OPERATORS && (!isFloat(e.dtype) || !['div', 'mod', 'quo', 'rem'].includes(e.op))
        ? applied(e.op, parts(e.a, e.b))
        : null
    case 'select':
      return applied('select', parts(e.cond, e.then, e.else))
    case 'cast':
      return e.dtype === 'f64' || e.x.dtype !== 'f64' ? writeCondition(e.x) : null
    default:
      return null
  }
}

/** The condition of a branch. Throws SptError `choose/open` if it rounds. */
export const conditionOf = (e: Expr): SizeExpr =>
  writeCondition(e) ??
  failWith('choose/open', `a condition of a family of plans rounds: ${printExpr1(e)}`, {
    expected: 'comparisons of integers, sizes and statistics',
    hint: 'multiply instead of dividing: longest(j) > 2 * mean(j)',
  })

const STATISTICS = ['count', 'longest', 'shortest', 'mean', 'empty', 'segments', 'nnz'] as const

const selection = record<Omit<LoadableFamily, 'kernel' | 'plans'>>({
  schedule: text,
  statistics: map(record<PlanStatistic>({ kind: oneOf(STATISTICS), of: text })),
  branches: list(record<FamilyBranch>({ when: list(sizeExpression), schedule: text, plan: count })),
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
  const kernel = readKernel({ binding: binding as PlanBinding })
  const { branches, statistics, schedule } = selection.read(own, 'choose')
  if (branches.length === 0) malformed('choose.branches', branches, 'one branch or more')
  for (const [name, { kind, of }] of statistics) {
    const known = kind === 'nnz' ? kernel.buffers : kernel.axes
    if (!known.some((x) => x.name === of))
      malformed(`choose.statistics.${name}.of`, of, 'a name of the kernel')
  }
  const names = new Set([...statistics.keys(), ...kernel.params.map((p) => p.name)])
  branches.forEach(({ when, plan }, k) => {
    if (plan >= plans.length)
      malformed(`choose.branches[${k}].plan`, plan, `the index of one of ${plans.length} plans`)
    for (const name of when.flatMap(namesOfSize))
      if (!names.has(name)) malformed(`choose.branches[${k}].when`, name, `one of ${[...names].join(', ')}`)
  })
  return { kernel, schedule, statistics, branches, plans: plans.map((p) => readPlan(p)) }
}

/** Names of sizes in an expression. */
export const namesOfSize = (e: SizeExpr): readonly string[] =>
  typeof e === 'number' ? [] : typeof e === 'string' ? [e] : (e.slice(1) as SizeExpr[]).flatMap(namesOfSize)
