/**
 * Families of plans in pages: the plan whose conditions hold for the sizes and statistics of a call. Imports no code, so that bundlers
 * leave the runtime in one piece, and load this module for families only.
 */
import type { Sizes, valueIn } from '../plan/interpret.ts'
import type { Expression, Plan, PlanFamily } from '../plan/schema.ts'
import type { Binding } from './binding.ts'
import type { Inputs, sizesOf } from './inputs.ts'
import type { failWith } from './plan-error.ts'

/** Functions of the runtime. */
interface Runtime {
  readonly sizesOf: typeof sizesOf
  readonly valueIn: typeof valueIn
  readonly failWith: typeof failWith
}

type Bind = (inputs: Inputs) => Promise<Binding>

/**
 * Binds inputs, with statistics (`'nnz(A)'`), to the plan that they select, which is compiled once.
 * @throws PlanError as `selectPlan`, and as the plan
 */
export function binderOf(
  family: PlanFamily,
  instantiate: (plan: Plan) => Promise<{ readonly bind: Bind }>,
  runtime: Runtime,
): Bind {
  const { plans, choose } = family
  const instances = new Map<Plan, ReturnType<typeof instantiate>>()
  return async (inputs) => {
    const plan = selectPlan(family, runtime.sizesOf(plans[0]!, inputs), runtime)
    const instance = instances.get(plan) ?? instantiate(plan)
    instances.set(plan, instance)
    const own = Object.entries(inputs).filter(([name]) => !(name in choose.statistics))
    return (await instance).bind(Object.fromEntries(own))
  }
}

/**
 * The first plan whose conditions hold for these sizes and statistics.
 * @throws PlanError `choose/no-match`, `choose/unknown-statistic`, `bind/missing-size`
 */
export function selectPlan(
  { kernel, choose, plans }: PlanFamily,
  facts: Sizes,
  { valueIn, failWith }: Pick<Runtime, 'valueIn' | 'failWith'>,
): Plan {
  const known = (name: string): number => {
    const value = facts.get(name)
    if (value !== undefined && Number.isFinite(value)) return value
    return failWith(
      name in choose.statistics ? 'choose/unknown-statistic' : 'bind/missing-size',
      `missing ${name}, by which ${kernel}.${choose.schedule} selects a plan`,
      `a number: { '${name}': … }`,
    )
  }
  /** The value of a condition or an operand, which may be a fraction: only quotients of integers are rounded. */
  const result = (e: Expression): number => {
    if (typeof e === 'number') return e
    if (typeof e === 'string') return known(e)
    const [op, ...operands] = e as readonly [string, ...Expression[]]
    if (op === 'var') return result(operands[1]!)
    if (op === 'const') return Number(operands[1])
    if (op === 'cast') {
      const value = result(operands[1]!)
      return isFraction(e) ? value : Math.trunc(value)
    }
    const values = operands.map(result)
    return op === 'div' && operands.some(isFraction)
      ? values[1]! && values[0]! / values[1]!
      : valueIn([op, ...values], facts)!
  }
  const branch = choose.branches.find((b) => b.when.every((e) => result(e) !== 0))
  return (branch && plans[branch.plan]) ?? failWith('choose/no-match', `no plan of ${kernel} for these sizes`)
}

/** True for expressions of a floating-point type. */
function isFraction(e: Expression): boolean {
  if (typeof e !== 'object') return false
  const [op, ...operands] = e as readonly [string, ...Expression[]]
  if (/^(?:var|const|cast)$/.test(op)) return /^b?f/.test(operands[0] as string)
  const isTruth = /^(?:[lg][te]|eq|ne|and|or|not)$/.test(op)
  return !isTruth && operands.slice(op === 'select' ? 1 : 0).some(isFraction)
}
