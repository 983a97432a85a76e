/** Report of `spt explain`: traffic, operations, occupancy and time of each launch. */
import type { Selection } from '../../api/dispatch/dispatch-conditions.ts'
import type {
  Achieved,
  Explanation,
  LaunchExplanation,
  Roof,
  Times,
  Work,
} from '../../run/explain/explanation.ts'
import { allOperations, ceilingsOf } from '../../run/explain/roofline.ts'
import type { UnorderedSum } from '../../run/verify/unordered-sums.ts'
import { type Form, predictedText, ruleText, scheduleTexts } from '../forms.ts'
import { count, type Lines, linesText, ms, percent } from '../output/figures.ts'
import type { ScheduledKernel } from '../scheduled-kernel.ts'

/** A launch below this share of the roofline is not limited by bandwidth or floating-point throughput. */
const BOUND_SHARE = 0.3

const withUnit = (x: number, units: readonly string[]): string => {
  const k = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log10(Math.max(x, 1)) / 3)))
  const value = x / 1000 ** k
  return `${k === 0 ? count(Math.round(value)) : value.toPrecision(4)} ${units[k]}`.trimEnd()
}
const bytes = (n: number): string => withUnit(n, ['bytes', 'kB', 'MB', 'GB', 'TB'])
const countText = (n: number): string => withUnit(n, ['', 'thousand', 'million', 'billion', 'trillion'])
const rate = (n: number): string => withUnit(n, ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s'])
const flops = (n: number): string => withUnit(n, ['FLOP/s', 'kFLOP/s', 'MFLOP/s', 'GFLOP/s', 'TFLOP/s'])

const timeText = (t: Times): string =>
  `${ms(t.median)} (median of ${t.samples}, least ${ms(t.min)}; an empty region takes ${ms(t.floor)})`

function roofText(roof: Roof, time: Times | null): string {
  const share =
    time && time.median > 0 ? `: ${percent(roof.minMilliseconds / time.median)} of this rate reached` : ''
  const remark =
    time && roof.minMilliseconds < BOUND_SHARE * time.median
      ? '; neither bytes nor operations on floats limit it, but latency, imbalance, cache traffic or integer arithmetic'
      : ''
  return `${roof.by}, at least ${ms(roof.minMilliseconds)}${share}${remark}`
}

const certaintyText = ({ sampledFraction, hasAssumptions }: Work['certainty']): string =>
  [
    sampledFraction < 1 ? `estimated from ${percent(sampledFraction)} of the threads that differ` : '',
    hasAssumptions ? 'conditions on computed values are assumed to be true' : '',
  ]
    .filter((x) => x !== '')
    .join('; ')

const byteLines = ({ bytes: { compulsory, loaded, stored } }: Work): Lines => ({
  'bytes, at least': `${bytes(compulsory)} (each array once)`,
  'bytes, accessed': `${bytes(loaded)} loaded, ${bytes(stored)} stored (before caches)`,
})

function workLines(w: Work): Lines {
  const { sharedLoaded, sharedStored } = w.bytes
  const { scalar, matrix16, matrix32, matrixOther } = w.operations
  const units = [
    [scalar, 'plain'],
    [matrix16, 'in matrix units, 16 bits'],
    [matrix32, 'in matrix units, tf32'],
    [matrixOther, 'in matrix units'],
  ] as const
  const operations = units.filter(([n]) => n > 0).map(([n, name]) => `${countText(n)} ${name}`)
  const isShared = sharedLoaded + sharedStored > 0
  return {
    'shared, accessed': isShared ? `${bytes(sharedLoaded)} loaded, ${bytes(sharedStored)} stored` : null,
    operations: `${operations.join(', ') || 'none'}${allOperations(w.operations) > 0 ? `; ${w.intensity.toPrecision(3)} for each byte at least` : ''}`,
    counts: certaintyText(w.certainty),
  }
}

function timeLines({ time, achieved, roof }: Pick<LaunchExplanation, 'time' | 'achieved' | 'roof'>): Lines {
  return {
    ...(time && { time: timeText(time) }),
    achieved: achieved && achievedText(achieved),
    bound: roof && roofText(roof, time),
  }
}

function achievedText(a: Achieved): string {
  const shareText = (share: number | null): string => (share === null ? '' : ` (${percent(share)})`)
  return `${rate(a.bandwidth)}${shareText(a.bandwidthFraction)}, ${flops(a.flops)}${shareText(a.flopsFraction)}`
}

const product = (xs: readonly number[]): string => xs.map(count).join(' × ')

function launchLines(l: LaunchExplanation): Lines {
  const { resources: r, occupancy: o } = l
  const arrays = l.arrays.map((a) => {
    const accesses = [
      a.loads > 0 ? `${count(Math.round(a.loads))} loaded` : '',
      a.stores > 0 ? `${count(Math.round(a.stores))} stored` : '',
      a.atomics > 0 ? `${count(Math.round(a.atomics))} updated atomically` : '',
    ].filter((x) => x !== '')
    return [`  ${a.array}`, `${accesses.join(', ')}; has ${count(a.elements)} of ${a.elementBytes} bytes`]
  })
  const local = r && r.local > 0 ? `and ${r.local} bytes of local memory` : 'no local memory'
  return {
    'blocks × threads': `${count(l.blocks)} × ${count(l.threads)} (${product(l.grid)} of ${product(l.block)})`,
    registers: r ? `${r.registers} a thread, ${local}` : 'not known',
    'shared memory': `${count(r?.shared ?? l.sharedBytes)} bytes a block`,
    occupancy:
      o &&
      `${o.blocks} blocks, ${o.warps} of ${o.maxWarps} warps a multiprocessor (${percent(o.warps / o.maxWarps)}), limited by ${o.limitedBy}; ${o.waves === 1 ? 'one wave' : `${count(o.waves)} waves`}`,
    ...byteLines(l),
    ...Object.fromEntries(arrays),
    ...workLines(l),
    ...timeLines(l),
  }
}

/** Explains why rates have no percentages, if ceilings are not measured. */
const ceilingsText = ({ device, deviceName }: Explanation): string | null =>
  deviceName === null || ceilingsOf(device, deviceName)
    ? null
    : `not measured for ${deviceName}: so there are no percentages and no bounds (spt calibrate --device ${device} measures them)`

/** The condition by which a schedule was selected. */
export function selectionText(selection: Selection): string {
  if (selection.alternatives) return `by ${selection.dispatch}: ${selection.reason}`
  if (selection.schedule === null) return `by ${ruleText(selection)}`
  const { dispatch, reason, declaredBy, hostSelection } = selection
  const host = hostSelection === undefined ? '' : ` (the host selects before each run: ${hostSelection})`
  return `by ${dispatch}: ${reason}${declaredBy ? `, of ${declaredBy}` : ''}${host}`
}

/** The report. `forms` start with the form that runs; `noTimeReason` states why no time was measured. */
export function explanationText(
  e: Explanation,
  scheduled: Pick<ScheduledKernel, 'schedule' | 'selection'> & { readonly forms: readonly Form[] },
  noTimeReason: string | null,
): string {
  const { schedule, selection, forms } = scheduled
  const sizes = Object.entries(e.sizes).map(([name, n]) => `${name} = ${Number.isInteger(n) ? count(n) : n}`)
  const isMultiStep = e.steps.length > 1
  const header = linesText(
    {
      kernel: e.kernel,
      device: deviceText(e.device, e.deviceName),
      schedule: scheduleTexts(schedule, forms, e.device, e.deviceName),
      selected: selection && selectionText(selection),
      predicted: selection && predictedText(selection, e.device, e.deviceName),
      sums: summationText(e.unorderedSums),
      sizes: sizes.join(', ') || 'none',
      ceilings: ceilingsText(e),
      time: noTimeReason === null ? null : `not measured: ${noTimeReason}`,
      ...(isMultiStep && { ...byteLines(e.total), ...workLines(e.total), ...timeLines(e) }),
    },
    { width: 9, gap: ' ' },
  )
  const steps = e.steps.map((s, k) =>
    s.kind === 'clear'
      ? `\nstep ${k + 1}: clear ${s.array}, ${bytes(s.bytes)}\n`
      : `\nstep ${k + 1}: launch ${s.name}${s.alternative === null ? '' : ` (only if ${s.alternative} is selected)`}\n${linesText(launchLines(s), { indent: '  ', width: 17, gap: ' ' })}`,
  )
  return header + steps.join('')
}

export const deviceText = (kind: string, name: string | null): string =>
  name === null || name === kind ? kind : `${kind} (${name})`

/** States if results are bitwise reproducible. */
export function summationText(sums: readonly UnorderedSum[]): string {
  if (sums.length === 0) return 'in a fixed order: equal inputs give equal bits'
  const launches = new Map<string, number>()
  for (const { buffer, reducer } of sums)
    launches.set(`${buffer} (${reducer})`, (launches.get(`${buffer} (${reducer})`) ?? 0) + 1)
  const sumTexts = [...launches].map(([sum, n]) => (n > 1 ? `${sum} in ${n} launches` : sum))
  return `NOT REPRODUCIBLE: threads update ${sumTexts.join(', ')} atomically in any order, so runs differ in the last bits`
}
