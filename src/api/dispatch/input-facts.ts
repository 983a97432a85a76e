/** The facts about inputs and a device that are known before a run. */
import { byName } from '../../ast/by-name.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { agreedSizes } from '../../run/bind/sizes/bound-sizes.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'
import { declaredOf, expectInputs, expectRecord, valuesIn } from '../inputs/bound-inputs.ts'
import { besideDeclared, type DeclaredInputs } from '../inputs/format-input-binding.ts'
import { checkResident } from '../resident/resident-structure.ts'
import type { SelectionContext, SelectionInputs } from './device-facts.ts'
import { checkDeviceFacts, deviceAnswer } from './device-facts.ts'
import type { Branching } from './dispatch-conditions.ts'
import { SizeFacts } from './facts.ts'
import { Statistics } from './statistics.ts'

/** Facts about data and device that a dispatch or a space uses. */
type QueriedFacts = Pick<Branching, 'kernel' | 'name' | 'statistics' | 'device'>

/** The auto-scheduler has no conditions. */
const NOTHING: QueriedFacts = { kernel: '', name: 'auto', statistics: new Map(), device: new Map() }

/**
 * Checks inputs, and returns values to bind (bare arrays have the shapes of their tensors), the values that the kernel declares, and the facts
 * that are known before a run. `queried`: `null` for the auto-scheduler. `used`: lists and sets that formats take, which the scheduled kernel checks.
 * Throws SptError `api/argument`, `choose/unknown-name`, `choose/unknown-feature`, and as `valuesIn`.
 */
export function inputFacts(
  queried: QueriedFacts | null,
  source: Kernel1,
  on: SelectionContext,
  given: SelectionInputs,
  used: DeclaredInputs,
) {
  expectRecord(given)
  const { resident = {}, statistics = {}, capability, processors, features, ...inputs } = given
  expectInputs(inputs)
  const { tensors = {} } = inputs
  expectArgument(isRecord(resident), 'resident', resident, 'resident tensors by name')
  for (const [name, t] of Object.entries(resident)) checkResident(t, `resident tensor ${name}`)
  const query = queried ?? NOTHING
  const device = { capability, processors, features }
  checkDeviceFacts(device, query.device.values())
  const there = declaredOf(source, resident, used)
  // Arrays without a shape get sizes from the shapes of resident tensors, not from the caller.
  const agreed = Object.fromEntries(agreedSizes(source, Object.entries(there), {}))
  const params = isRecord(inputs.params ?? {}) ? { ...agreed, ...inputs.params } : inputs.params
  const declared = { ...inputs, ...(params && { params }), tensors: declaredOf(source, tensors, used) }
  const all = valuesIn(source, queried ? declared : { ...declared, statistics })
  const own = Object.entries(all.params).filter(([name]) => Object.hasOwn(inputs.params ?? {}, name))
  const values = { ...all, params: byName(own) }
  const bound = {
    ...values,
    by: `${'conditions' in query ? 'space' : 'schedule'} ${query.name}`,
    resident: there,
    statistics: callerStatistics(query, statistics),
    beside: besideDeclared(source, tensors, used),
  }
  const sizes = new SizeFacts(source, bound, (v) => {
    const question = query.device.get(v.name)
    return question && deviceAnswer(on, device, question, v)
  })
  return {
    values,
    inputs: { ...inputs, tensors: { ...tensors, ...values.tensors } },
    sizes,
    statistics: new Statistics(source, bound, sizes, query.statistics),
  }
}

/** Returns the statistics by their names in the dispatch. Throws SptError `api/argument`, `choose/unknown-name`. */
export function callerStatistics(
  { kernel, name: own, statistics }: Omit<QueriedFacts, 'device'>,
  given: Readonly<Record<string, number>>,
): ReadonlyMap<string, number> {
  expectArgument(isRecord(given), 'statistics', given, "numbers by name: { 'longest(j)': 700 }")
  const candidates = [...statistics.keys()]
  const known = new Map<string, number>()
  for (const [name, value] of Object.entries(given)) {
    expectArgument(
      typeof value === 'number' && value >= 0 && value < Infinity,
      `the value of ${name}`,
      value,
      'a finite number that is not negative',
    )
    const meant = candidates.find((c) => unspaced(c) === unspaced(name))
    expectArgument(
      meant === undefined || !known.has(meant),
      'statistics',
      name,
      'each statistic once, however it is spaced',
    )
    if (meant !== undefined) known.set(meant, value)
    else
      failWith('choose/unknown-name', `${kernel}.${own} does not depend on ${name}`, {
        lookup: { name, candidates },
        expected: candidates.join(', ') || 'no statistics',
      })
  }
  return known
}

const unspaced = (name: string): string => name.replace(/\s+/g, '')
