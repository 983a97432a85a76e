/** The report of a run: the verdict and a table for people, one object for programs. */

import type { Binding } from '../../api/built/binding.ts'
import type { Selection } from '../../api/dispatch/dispatch-conditions.ts'
import { fillRatio } from '../../api/dispatch/fill-ratio.ts'
import { decimal } from '../../ir/values/half.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import { commandsMeasuring } from '../../run/execution/launch-commands.ts'
import { coverageText } from '../../run/verify/compare-outputs.ts'
import type { UnorderedSum } from '../../run/verify/unordered-sums.ts'
import type { Verification } from '../../run/verify/verify.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { type Form, formJson, predictedText, scheduleTexts } from '../forms.ts'
import { count, jsonNumber, type Lines, linesText, ms, percent, size } from '../output/figures.ts'
import { deviceText, selectionText, summationText } from './explain-report.ts'
import { PHASES, type Phase } from './phase-timer.ts'
import type { SparseSizes } from './sparse-sizes.ts'

export interface Report extends SparseSizes {
  readonly kernel: string
  readonly device: DeviceKind
  readonly deviceName: string
  readonly schedule: string | null
  /** Explanation of the selection, if the schedule was selected automatically. */
  readonly selection: Selection | null
  /** Automatic forms of a kernel without a schedule, starting with the form that ran; empty if no form ran. */
  readonly forms: readonly Form[]
  /** Unordered sums of the schedule that ran; if there are none, equal inputs give equal bits. */
  readonly unorderedSums: readonly UnorderedSum[]
  readonly sizes: Readonly<Record<string, number>>
  /** Formats that are built at run time (`live`). */
  readonly built: readonly BuiltFormat[]
  /** Entries of bound tensors with the coordinates of another entry, whose values were added. */
  readonly duplicates: Readonly<Record<string, number>>
  /** Changes of type or shape of bound tensors: `x: f64 to f32`. */
  readonly converted: readonly string[]
  /** Padding zeros of blocks in files; padding is not bound. */
  readonly zeros: Readonly<Record<string, number>>
  /** Bytes on the device. */
  readonly bytes: number
  /** Peak memory of this process in bytes. */
  readonly peak: number
  /**
   * Milliseconds. `run` is the median of the timed warm runs, `first` is the first run. The other entries are phases and add up
   * to `total`; a skipped phase is 0.
   */
  readonly time: Readonly<Record<Phase | 'run' | 'first' | 'total', number>>
  readonly repeat: number
  /** Number of runs: the first, warm-up and timed ones. */
  readonly runs: number
  readonly seed: number
  /** Randomly generated inputs: tensors, axes (`axis j`: its coordinates), lists and sets. */
  readonly random: readonly string[]
  readonly verification: Verification | null
  /** Outputs with the files they were written to. */
  readonly written: readonly (readonly [string, string])[]
}

export function reportJson(r: Report): string {
  const { selection, forms, built, verification: v, ...fields } = r
  const dispatch = selection && {
    name: selection.dispatch,
    reason: selection.reason,
    ...(selection.declaredBy !== null && { declaredBy: selection.declaredBy }),
    values: selection.values,
    ...(selection.predictions.length > 0 && {
      predictions: selection.predictions,
      costModel: selection.costModel,
    }),
  }
  const sampled = v?.sample && { axis: v.sample.axis, coordinates: v.sample.coordinates.length }
  const report = {
    ...fields,
    dispatch,
    form: forms.length > 0 ? formJson(forms) : null,
    deterministic: r.unorderedSums.length === 0,
    live: built,
    verify: v && { ...v, sample: undefined, sampled },
  }
  return `${JSON.stringify(report, jsonNumber)}\n`
}

const sizesText = (record: Readonly<Record<string, number>>): string =>
  Object.entries(record)
    .map(([name, n]) => `${name} = ${Number.isInteger(n) ? count(n) : decimal(n, 'f32')}`)
    .join(', ')

function nonzerosText(r: Report): string {
  return Object.entries(r.nnz)
    .map(([name, n]) => {
      const padding = r.stored[name]! - n
      const duplicates = r.duplicates[name] ?? 0
      return [
        `${name} = ${count(n)}`,
        ...(padding > 0 ? [`${count(padding)} slots of padding`] : []),
        ...(duplicates > 0
          ? [`${count(duplicates)} duplicate${duplicates === 1 ? '' : 's'} (values added)`]
          : []),
      ].join(' and ')
    })
    .join(', ')
}

function verdictText({ verification: v, random }: Report): string {
  const data = random.length > 0 ? ` on random ${random.join(', ')}` : ''
  if (v === null) return `ok: ran${data}, not verified; --verify compares the results with the reference`
  const errors = `relative error ${v.maxRelativeError.toExponential(1)}, absolute ${v.maxAbsoluteError.toExponential(1)}`
  const sample = v.sample ? `, on ${count(v.sample.coordinates.length)} coordinates of ${v.sample.axis}` : ''
  if (v.verdict === 'empty') return 'ok: nothing to compare, since the outputs have no elements'
  if (v.verdict === 'undecided') return `NOTHING COMPARED${sample}: ${coverageText(v)}`
  const result = v.ok ? 'ok: agrees with the reference' : 'FAILED: differs from the reference'
  return `${result} (${errors})${sample}: ${coverageText(v)}`
}

function valuesText({ values }: Selection): string {
  const numeric = Object.entries(values).filter((x): x is [string, number] => typeof x[1] === 'number')
  const text = numeric.map(([name, v]) => `${name} = ${Number.isInteger(v) ? count(v) : v.toPrecision(3)}`)
  return text.length > 0 ? ` (${text.join(', ')})` : ''
}

function phaseLines({ time, runs }: Report): Lines {
  const first = ` (${count(runs)} runs; the first took ${ms(time.first)}, with compilation on first use)`
  return Object.fromEntries(
    (Object.keys(PHASES) as Phase[]).map((p) => [
      `  ${PHASES[p][1]}`,
      ms(time[p]) + (p === 'runs' ? first : ''),
    ]),
  )
}

const liveText = ({ tensor, share, milliseconds }: BuiltFormat): string =>
  `${tensor}: ${percent(share)} of its elements stored${milliseconds === null ? '' : `, ${ms(milliseconds)} to build`}`

export function reportText(r: Report, verbose: boolean): string {
  const { selection, device, deviceName } = r
  const forms = r.schedule === null ? r.forms.slice(0, verbose ? undefined : 1) : []
  const lines = {
    kernel: r.kernel,
    device: deviceText(device, deviceName),
    schedule: scheduleTexts(r.schedule, forms, device, deviceName),
    selected: selection && `${selectionText(selection)}${verbose ? valuesText(selection) : ''}`,
    predicted: selection && predictedText(selection, device, deviceName),
    time: `${ms(r.time.run)} per run (warm${r.repeat > 1 ? `, median of ${r.repeat}` : ''})`,
    built: r.built.map(liveText).join('; '),
    sizes: sizesText(r.sizes) || 'none',
    nonzeros: nonzerosText(r),
    converted: verbose ? r.converted.join(', ') : null,
    zeros:
      Object.keys(r.zeros).length > 0 ? `${sizesText(r.zeros)} of stored blocks are padding, left out` : null,
    random: r.random.length > 0 ? `${r.random.join(', ')} (seed ${r.seed})` : null,
    sums: summationText(r.unorderedSums),
    memory: `${size(r.bytes)} on the device${verbose ? `; at most ${size(r.peak)} in this process` : ''}`,
    total: `${ms(r.time.total)}${verbose ? '' : ' with preparation (--verbose lists the phases)'}`,
    ...(verbose && phaseLines(r)),
    wrote: r.written.map(([name, path]) => `${name} to ${path}`),
  }
  return `${verdictText(r)}\n${linesText(lines, { width: 9, gap: ' ' })}`
}

// Dynamic sparsity: fill ratio of each `live` tensor in the latest run, and time of its format builder.

interface BuiltFormat {
  readonly tensor: string
  /** Stored slots / dense size. */
  readonly share: number
  /** Milliseconds of the launches that build the index; `null` if they cannot run separately. */
  readonly milliseconds: number | null
}

/** Number of timings of a builder; the median is reported. */
const REPEATS = 5

export async function builtFormats({ executable }: Binding): Promise<readonly BuiltFormat[]> {
  const { program, bound } = executable
  const { plan, device } = program
  const extents = extentsOf(bound.kernel, bound.params)
  const out: BuiltFormat[] = []
  for (const live of plan.runtimeLists ?? []) {
    const counters = live.parts.map((p) => p.counts)
    const axes = bound.kernel.buffers.find((b) => b.name === live.tensor)?.axes
    if (!axes || !counters.every((name) => plan.buffers.some((b) => b.name === name))) continue
    const counts = await Promise.all(counters.map((name) => executable.values(name)))
    const elements = axes.reduce((n, a) => n * (extents.get(a) ?? 0), 1)
    const commands = commandsMeasuring(executable, counters)
    const times = commands.length > 0 ? (await device.time(commands, REPEATS)).toSorted((a, b) => a - b) : []
    const share = fillRatio(live, counts, elements, bound.params)
    out.push({ tensor: live.tensor, share, milliseconds: times[times.length >> 1] ?? null })
  }
  return out
}
