/** The error for lists built at run time that exceed their capacity. */

import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { quantity } from '../../ast/parse/checks.ts'
import type { Capacity } from '../../ir/coordinates/stage1.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Plan } from '../../ir/statements/loops.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { ValueArray } from '../../storage/tensor.ts'

const CODE = 'run/overflow'

export const isOverflow = (e: unknown): e is SptError =>
  e instanceof SptError && e.diagnostics[0]?.code === CODE

/** Returns the error with a hint for the case that the schedule with sufficient capacity stores the updated tensors in another format. */
export function storedElsewhere(
  { diagnostics }: SptError,
  schedule: string,
  tensors: readonly string[],
): SptError {
  const [first] = diagnostics
  const why = `${schedule}, which would be chosen now, stores ${tensors.join(' and ')} in another format: prepare the kernel anew for it`
  return new SptError({ ...first!, hint: `${first!.hint}; ${why}` })
}

type Counts = ArrayLike<number | bigint | boolean>
type Rooms = Pick<Plan, 'name' | 'capacities' | 'runtimeLists'>

/** Checks the counts of lists after a run. Returns the error, or undefined if no list exceeds its capacity. */
export async function overflow(
  plan: Rooms,
  values: (counts: string) => Promise<ValueArray>,
  sizes: ReadonlyMap<string, number>,
): Promise<SptError | undefined> {
  const counts = new Map<string, ValueArray>()
  for (const c of plan.capacities ?? []) counts.set(c.counts, await values(c.counts))
  return overflowIn(plan, counts, sizes)
}

/** Checks counts that are already on the host. */
export function overflowIn(
  { name, capacities = [], runtimeLists: found = [] }: Rooms,
  values: { get(counts: string): Counts | undefined },
  sizes: ReadonlyMap<string, number>,
): SptError | undefined {
  for (const c of capacities) {
    const [part] = found.flatMap(({ tensor, parts }) =>
      parts.flatMap((p) =>
        parts.length > 1 && p.axis === c.axis ? [`${p.instance.text} of ${tensor}`] : [],
      ),
    )
    const error = overflowOf({ name, part }, c, values.get(c.counts)!, sizes)
    if (error) return error
  }
  return undefined
}

function overflowOf(
  { name, part }: { readonly name: string; readonly part: string | undefined },
  { axis, width, capacity, span }: Capacity,
  counts: Counts,
  sizes: ReadonlyMap<string, number>,
): SptError | undefined {
  let most = 0
  for (let k = 0; k < counts.length; k++) most = Math.max(most, Number(counts[k]))
  const positions = Math.ceil(most / width)
  const room = Number(evaluate(capacity, sizes))
  if (positions <= room) return undefined
  return new SptError({
    code: CODE,
    message: `${name} has ${quantity(positions, 'position')} of ${axis}${part ? ` (part ${part})` : ''}, and the capacity is ${room} (${printExpr1(capacity)})`,
    ...(span && { span }),
    expected: `a capacity of at least ${positions}`,
    hint: `increase the number after \`capacity\`${part ? ', which may have one for each part: capacity (E, E)' : ''}, or leave it out: the capacity is then the maximum`,
  })
}
