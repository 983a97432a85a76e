/**
 * Facts for the conditions of dispatches and search spaces before any run: sizes and properties of the device, and statistics of the
 * bound data. Runs add `measurements.ts`.
 */
import { byName } from '../../ast/by-name.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { agreedSizes } from '../../run/bind/sizes/bound-sizes.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'
import { declaredOf, expectInputs, expectRecord, type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { besideDeclared, type DeclaredInputs } from '../inputs/format-input-binding.ts'
import { checkResident } from '../resident/resident-check.ts'
import type { DeviceFacts, SelectionContext, SelectionInputs } from './device-facts.ts'
import { checkDeviceFacts, deviceAnswer } from './device-facts.ts'
import type { Branching, Lookup } from './dispatch-conditions.ts'
import { Statistics } from './statistics.ts'

/** Facts about data and device that a dispatch or a space uses. */
type QueriedFacts = Pick<Branching, 'kernel' | 'name' | 'statistics' | 'device'>

/** The auto-scheduler has no conditions. */
const NOTHING: QueriedFacts = { kernel: '', name: 'auto', statistics: new Map(), device: new Map() }

export class Facts {
  readonly statistics: Statistics
  /** Values to bind; bare arrays have the shapes of their tensors. */
  readonly inputs: RunInputs
  /** Checked values that the kernel declares. */
  readonly values: ReturnType<typeof valuesIn>
  readonly #queried: QueriedFacts
  readonly #on: SelectionContext
  readonly #device: DeviceFacts

  /**
   * `queried`: `null` for the auto-scheduler. `used`: lists and sets that formats take; the scheduled kernel checks these.
   * Throws SptError `api/argument`, `choose/unknown-name`, `choose/unknown-feature`, and as `valuesIn`.
   */
  constructor(
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
    this.#queried = queried ?? NOTHING
    this.#on = on
    this.#device = { capability, processors, features }
    checkDeviceFacts(this.#device, this.#queried.device.values())
    const there = declaredOf(source, resident, used)
    // Arrays without a shape get sizes from the shapes of resident tensors, which are not sizes that the caller gave.
    const sizes = Object.fromEntries(agreedSizes(source, Object.entries(there), {}))
    const params = isRecord(inputs.params ?? {}) ? { ...sizes, ...inputs.params } : inputs.params
    const declared = { ...inputs, ...(params && { params }), tensors: declaredOf(source, tensors, used) }
    const values = valuesIn(source, queried ? declared : { ...declared, statistics })
    const own = Object.entries(values.params).filter(([name]) => Object.hasOwn(inputs.params ?? {}, name))
    this.values = { ...values, params: byName(own) }
    this.inputs = { ...inputs, tensors: { ...tensors, ...this.values.tensors } }
    this.statistics = new Statistics(source, {
      ...this.values,
      by: `${'conditions' in this.#queried ? 'space' : 'schedule'} ${this.#queried.name}`,
      resident: there,
      statistics: callerStatistics(this.#queried, statistics),
      beside: besideDeclared(source, tensors, used),
    })
  }

  get sizes(): ReadonlyMap<string, number> {
    return this.statistics.sizes
  }

  /**
   * Returns the value of a statistic, device property or size. Throws SptError `choose/unknown-…`.
   * @param found - Statistics measured by runs, by name, which replace others
   */
  lookup(found?: ReadonlyMap<string, number>): Lookup {
    const { device, statistics } = this.#queried
    return (variable) => {
      const measured = found?.get(variable.name)
      if (measured !== undefined) return measured
      const property = device.get(variable.name)
      if (property) return deviceAnswer(this.#on, this.#device, property, variable)
      const statistic = statistics.get(variable.name)
      return statistic ? this.statistics.of(statistic, variable) : this.statistics.size(variable.name)
    }
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
