/** Candidate conditions of choices among schedules, as far as the data of a study distinguish them. */

import type { SelectionContext } from '../../api/dispatch/device-facts.ts'
import { lookupIn } from '../../api/dispatch/facts.ts'
import { inputFacts } from '../../api/dispatch/input-facts.ts'
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { AxisStatistic, DeviceQuestion, Statistic } from '../../elaborate/index.ts'
import { hasIndptr, isDenseChain } from '../../ir/coordinates/axis.ts'
import { variable } from '../../ir/expressions/expr.ts'
import type { Fact } from '../../ir/statements/loops.ts'
import { brokenFact } from '../../plan/interpret.ts'

/** Quantity that a condition compares with a number: a size, a statistic, a property of the device, or a ratio of two. */
export interface Measure {
  readonly of: string
  readonly per: string | null
  /** True for Boolean quantities, such as a kind of device. */
  readonly isTruth: boolean
}

/** A measure is above a number; a Boolean measure holds. */
export interface Condition {
  readonly measure: Measure
  readonly above: number
}

/** Sizes, statistics and device properties by name; unknown ones are absent. */
export type Values = ReadonlyMap<string, number>

/** As evaluated by `choose`: ratios are not rounded. */
export const holds = ({ measure: { of, per }, above }: Condition, values: Values): boolean =>
  values.get(of)! > above * (per === null ? 1 : values.get(per)!)

export function conditionText({ measure: { of, per, isTruth }, above }: Condition): string {
  if (isTruth) return of
  if (per === null) return `${of} > ${above}`
  return above === 1 ? `${of} > ${per}` : `${of} > ${above} * ${per}`
}

/** Value of a measure, by which data are ordered. */
export function ratio({ of, per }: Measure, values: Values): number {
  const [a, b] = [values.get(of)!, per === null ? 1 : values.get(per)!]
  return b === 0 ? 0 : a / b
}

/** Quantities available to the conditions of a kernel's choices, simplest first. */
export interface Questions {
  readonly measures: readonly Measure[]
  readonly statistics: ReadonlyMap<string, Statistic>
  /** @throws SptError of inputs, as `bindInputs` */
  valuesOn(device: SelectionContext, inputs: RunInputs): Values
}

const measure = (of: string, per: string | null = null, isTruth = false): Measure => ({ of, per, isTruth })

/** Statistics by discriminating power: among measures that separate the cases equally, the first is used. */
const STATISTICS: readonly AxisStatistic[] = ['longest', 'mean', 'empty', 'count', 'shortest', 'segments']

export function questionsOf(kernel: Kernel): Questions {
  const { source } = kernel
  const axes = new Map(source.axes.map((a) => [a.name, a]))
  const ragged = source.axes.filter(hasIndptr)
  const sizes = source.params.filter((p) => p.kind === 'size' && !p.measured).map((p) => p.name)
  const sparse = source.buffers.filter((b) => b.axes.some((a) => !isDenseChain(axes, a)))
  const statistics = new Map<string, Statistic>([
    ...ragged.flatMap(({ name: axis }) =>
      STATISTICS.map((kind) => [`${kind}(${axis})`, { kind, axis }] as const),
    ),
    ...sparse.map((b) => [`nnz(${b.name})`, { kind: 'nnz', tensor: b.name }] as const),
  ])
  const device = new Map<string, DeviceQuestion>([
    ...DEVICE_KINDS.map((kind) => [kind, { kind: 'is', device: kind }] as const),
    ['capability', { kind: 'capability' }],
    ['processors', { kind: 'processors' }],
  ])
  const queried = { kernel: source.name, name: 'tuned', statistics, device }
  return {
    statistics,
    measures: [
      ...DEVICE_KINDS.map((kind) => measure(kind, null, true)),
      ...sizes.map((s) => measure(s)),
      ...[...statistics.keys()].map((s) => measure(s)),
      // Independent of the data's size: imbalance, empty segments, fill.
      ...ragged.flatMap(({ name: axis, extent }) => [
        measure(`longest(${axis})`, `mean(${axis})`),
        measure(`empty(${axis})`, `segments(${axis})`),
        ...(extent.kind === 'var' && sizes.includes(extent.name)
          ? [measure(`mean(${axis})`, extent.name), measure(`longest(${axis})`, extent.name)]
          : []),
      ]),
      measure('capability'),
      measure('processors'),
    ],
    valuesOn(on, inputs) {
      const { statistics: own, sizes: given } = inputFacts(
        queried,
        source,
        on,
        inputs,
        kernel.allFormatInputs,
      )
      const look = lookupIn([own], given)
      const names = [...sizes, ...statistics.keys(), ...device.keys()]
      return new Map(
        names.flatMap((name) => {
          // Unknown quantities are not available to conditions.
          const value = resultOrError(() => look(variable(name, 'f64')))
          return value instanceof SptError ? [] : [[name, value] as const]
        }),
      )
    },
  }
}

// Training data of choices: measured times of candidates on several data sets.

interface EvidenceCase {
  /** Cross-validation group: cases left out together, such as one matrix with several sizes. */
  readonly group: string
  readonly values: Values
  /** Index of the candidate of the default schedule; `null` if none runs. */
  readonly standard?: number | null | undefined
}

export interface EvidenceCandidate {
  /** Milliseconds for each case; `null` if the candidate cannot run there, or was not measured. */
  readonly times: readonly (number | null)[]
  readonly requires: readonly Fact[]
  /** Groups on which it was found; `null` for candidates that are always evaluated. */
  readonly foundOn: ReadonlySet<string> | null
}

export interface Evidence {
  readonly measures: readonly Measure[]
  readonly cases: readonly EvidenceCase[]
  readonly candidates: readonly EvidenceCandidate[]
}

/** A part of the cases, with the candidates known without the others. */
export interface Part {
  readonly cases: readonly number[]
  readonly candidates: readonly number[]
}

/** Loss of candidates that cannot run: larger than any ratio of times, so that no minimal sum contains it. */
export const CANNOT_RUN = 1e6

/** For each candidate and case log(time / best of the case); `CANNOT_RUN` if it cannot run. */
export function lossesOf({ cases, candidates }: Evidence): readonly Float64Array[] {
  const best = cases.map((_, c) => Math.min(...candidates.map((k) => k.times[c] ?? Number.POSITIVE_INFINITY)))
  return candidates.map(({ times }) =>
    Float64Array.from(cases, (_, c) => {
      const time = times[c] ?? null
      return time === null ? CANNOT_RUN : Math.log(time / best[c]!)
    }),
  )
}

export const isMet = ({ requires }: Pick<EvidenceCandidate, 'requires'>, values: Values): boolean =>
  brokenFact(requires, values) === undefined

/** The evidence without one group: neither its times nor candidates found only on it. */
export function without({ cases, candidates }: Evidence, group: string): Part {
  const isAvailable = ({ foundOn }: EvidenceCandidate): boolean =>
    foundOn === null || [...foundOn].some((g) => g !== group)
  return {
    cases: [...cases.keys()].filter((c) => cases[c]!.group !== group),
    candidates: [...candidates.keys()].filter((k) => isAvailable(candidates[k]!)),
  }
}

export const whole = ({ cases, candidates }: Evidence): Part => ({
  cases: [...cases.keys()],
  candidates: [...candidates.keys()],
})
