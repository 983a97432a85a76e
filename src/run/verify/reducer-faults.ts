/**
 * Checks whether a declared reducer satisfies its laws for the reduced values. If not, results depend on the order of combination, and no
 * schedule is wrong.
 */

import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { declaredMonoids } from '../../ir/coordinates/stage1-tree.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { Monoid } from '../../ir/values/monoid.ts'
import { type MonoidLaws, monoidLaws } from '../../reference/evaluation/monoid-laws.ts'
import { type RefSample, reductions } from '../../reference/index.ts'
import { referenceInputs } from '../bind/results/reference-inputs.ts'
import { Random } from '../bind/sources/random-tensors.ts'
import type { Bound } from '../bind/types.ts'

/** An element of a result, by its index there. */
export interface Place {
  readonly buffer: string
  readonly element: number
}

/** Maximum number of coordinates that the reference visits: one or two seconds. */
const VISITS = 2 ** 25
/** Maximum number of stored operands per array, in addition to those of the requested elements. */
const KEPT = 2 ** 16
/** Number of random groupings that are tested per element. */
const GROUPINGS = 64

type Operand = readonly number[]

interface Operands {
  readonly reducer: Monoid
  readonly of: Map<number, Operand[]>
  kept: number
}

/**
 * Describes the violated law of a reducer with values, as text; `null` if none is violated. `places`: differing elements, which are
 * checked first.
 */
export function reducerFault(
  source: Kernel1,
  bound: Bound,
  sampled: RefSample | null,
  places: readonly Place[],
): string | null {
  if (declaredMonoids(source.body).size === 0) return null
  const all = operandsOf(source, bound, sampled, places)
  for (const [buffer, { reducer, of }] of all) {
    const laws = monoidLaws(reducer)
    const first = places.flatMap((p) => (p.buffer === buffer ? [p.element] : []))
    for (const element of new Set([...first, ...of.keys()])) {
      const wrong = brokenBy(laws, of.get(element) ?? [])
      if (wrong) return `${reducer.name} is not a reducer for these values: ${wrong}`
    }
  }
  return null
}

function operandsOf(
  source: Kernel1,
  bound: Bound,
  sampled: RefSample | null,
  places: readonly Place[],
): ReadonlyMap<string, Operands> {
  const all = new Map<string, Operands>()
  const asked = new Set(places.map((p) => `${p.buffer} ${p.element}`))
  const options = { sampled, visits: VISITS }
  try {
    reductions(source, referenceInputs(source, bound), options, (reducer, buffer, element, operand) => {
      const known = getOrAdd(all, buffer, (): Operands => ({ reducer, of: new Map(), kept: 0 }))
      if (known.kept >= KEPT && !asked.has(`${buffer} ${element}`)) return
      getOrAdd(known.of, element, () => []).push(operand)
      known.kept++
    })
  } catch (e) {
    // The operands collected so far are checked.
    if (!(e instanceof SptError) || e.diagnostics[0]!.code !== 'reference/too-long') throw e
  }
  return all
}

/** Tests sequential combination, as in the reference, and combination of groups, as in schedules. */
function brokenBy(laws: MonoidLaws, operands: readonly Operand[]): string | null {
  if (operands.length < 2) return null
  const fold = (list: readonly Operand[]): Operand => list.reduce((a, b) => laws.combine(a, b))
  let before = operands[0]!
  for (let k = 1; k < operands.length; k++) {
    const [b, c] = [operands[k]!, operands[k + 1] ?? operands[k - 1]!]
    const wrong = laws.violation(before, b, c)
    if (wrong) return wrong
    before = laws.combine(before, b)
  }
  const random = new Random(1)
  const within = (from: number, to: number): number => from + random.below(to - from)
  for (let k = 0; operands.length > 2 && k < GROUPINGS; k++) {
    const end = within(3, operands.length + 1)
    const second = within(2, end)
    const first = within(1, second)
    const parts = [operands.slice(0, first), operands.slice(first, second), operands.slice(second, end)]
    const [a, b, c] = parts.map(fold) as [Operand, Operand, Operand]
    const wrong = laws.violation(a, b, c)
    if (wrong) return wrong
  }
  return null
}
