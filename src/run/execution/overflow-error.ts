/** Checks of a run: lists built at run time that exceed their capacity, and lost writes. */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { capacitiesOf, capacityCounts } from '../../ir/coordinates/runtime-lists.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { LaunchPlan } from '../../plan/launch-plan.ts'
import type { ValueArray } from '../../storage/tensor.ts'
import type { Run } from './lost-writes-error.ts'

const CODE = 'run/overflow'

export const isOverflow = (e: unknown): e is SptError => e instanceof SptError && e.code === CODE

/** Returns the error with a hint for the case that the schedule with sufficient capacity stores the updated tensors in another format. */
export function storedElsewhere(
  { diagnostics }: SptError,
  schedule: string,
  tensors: readonly string[],
): SptError {
  const [first] = diagnostics
  const why = `${schedule}, which would be chosen now, stores ${tensors.join(' and ')} in another format: bind the tensors again for it`
  return new SptError({ ...first!, hint: `${first!.hint}; ${why}` })
}

type Counts = ArrayLike<number | bigint | boolean>
type ListCapacities = Pick<LaunchPlan, 'kernel' | 'runtimeLists'>

/** Checks the counts of lists after a run. Returns the error, or undefined if no list exceeds its capacity. */
export async function overflow(
  plan: ListCapacities,
  values: (counts: string) => Promise<ValueArray>,
  sizes: ReadonlyMap<string, number>,
): Promise<SptError | undefined> {
  const counts = new Map<string, ValueArray>()
  for (const name of capacityCounts(plan)) counts.set(name, await values(name))
  return overflowIn(plan, counts, sizes)
}

/** Checks counts that are already on the host. */
export function overflowIn(
  plan: ListCapacities,
  values: { get(counts: string): Counts | undefined },
  sizes: ReadonlyMap<string, number>,
): SptError | undefined {
  for (const c of capacitiesOf(plan)) {
    const error = overflowOf(plan.kernel, c, values.get(c.counts)!, sizes)
    if (error) return error
  }
  return undefined
}

function overflowOf(
  name: string,
  { width, capacity, part: { axis, instance }, lists }: ReturnType<typeof capacitiesOf>[number],
  counts: Counts,
  sizes: ReadonlyMap<string, number>,
): SptError | undefined {
  let most = 0
  for (let k = 0; k < counts.length; k++) most = Math.max(most, Number(counts[k]))
  const positions = Math.ceil(most / width)
  const limit = Number(evaluate(capacity, sizes))
  if (positions <= limit) return undefined
  const part = lists.parts.length > 1 ? `${instance.text} of ${lists.tensor}` : ''
  return new SptError({
    code: CODE,
    message: `${name} has ${quantity(positions, 'position')} of ${axis}${part ? ` (part ${part})` : ''}, and the capacity is ${limit} (${printExpr1(capacity)})`,
    ...(lists.span && { span: lists.span }),
    expected: `a capacity of at least ${positions}`,
    hint: `increase the number after \`capacity\`${part ? ', which may have one for each part: capacity (E, E)' : ''}, or leave it out: the capacity is then the maximum`,
  })
}

/** Checks a run: lists within their capacities, no lost writes. Returns the error. `run`: undefined if the data is not on the host. */
export async function runError(
  plan: ListCapacities & Pick<LaunchPlan, 'lostWrites'>,
  values: (buffer: string) => Promise<ValueArray>,
  sizes: ReadonlyMap<string, number>,
  run: Run | undefined,
): Promise<SptError | undefined> {
  const error = await overflow(plan, values, sizes)
  if (error || !plan.lostWrites) return error
  const status = await values(plan.lostWrites.buffer)
  const lost = plan.lostWrites.targets.filter((_, k) => status[k] !== 0)
  if (lost.length === 0) return undefined
  const { lostWrites } = await import('./lost-writes-error.ts')
  return lostWrites(plan.kernel, lost, run)
}
