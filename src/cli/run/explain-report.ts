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
import type { UnorderedSum } from '../../run/verify/summation-order.ts'
import { costModelText, type Form, formRows, predictedRow, ruleText } from '../forms.ts'
import { count, ms, percent } from '../output/figures.ts'
import type { ScheduledKernel } from '../scheduled-kernel.ts'

type Row = readonly [string, string]

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

const timeRow = (t: Times): Row => [
  'time',
  `${ms(t.median)} (median of ${t.samples}, least ${ms(t.min)}; an empty region takes ${ms(t.floor)})`,
]

function roofRow(roof: Roof, time: Times | null): Row {
  const share =
    time && time.median > 0 ? `: ${percent(roof.minMilliseconds / time.median)} of this rate reached` : ''
  const remark =
    time && roof.minMilliseconds < BOUND_SHARE * time.median
      ? '; neither bytes nor operations on floats limit it, but latency, imbalance, cache traffic or integer arithmetic'
      : ''
  return ['bound', `${roof.by}, at least ${ms(roof.minMilliseconds)}${share}${remark}`]
}

function certainty({ sampledFraction, hasAssumptions }: Work['certainty']): Row[] {
  const remarks = [
    sampledFraction < 1 ? `estimated from ${percent(sampledFraction)} of the threads that differ` : '',
    hasAssumptions ? 'conditions on computed values are assumed to be true' : '',
  ].filter((x) => x !== '')
  return remarks.length > 0 ? [['counts', remarks.join('; ')]] : []
}

function workRows(w: Work): Row[] {
  const { compulsory, loaded, stored, sharedLoaded, sharedStored } = w.bytes
  const { scalar, matrix16, matrix32, matrixOther } = w.operations
  const units = [
    [scalar, 'plain'],
    [matrix16, 'in matrix units, 16 bits'],
    [matrix32, 'in matrix units, tf32'],
    [matrixOther, 'in matrix units'],
  ] as const
  const operations = units.filter(([n]) => n > 0).map(([n, name]) => `${countText(n)} ${name}`)
  return [
    ['bytes, at least', `${bytes(compulsory)} (each array once)`],
    ['bytes, accessed', `${bytes(loaded)} loaded, ${bytes(stored)} stored (before caches)`],
    ...(sharedLoaded + sharedStored > 0
      ? [['shared, accessed', `${bytes(sharedLoaded)} loaded, ${bytes(sharedStored)} stored`] as const]
      : []),
    [
      'operations',
      `${operations.join(', ') || 'none'}${allOperations(w.operations) > 0 ? `; ${w.intensity.toPrecision(3)} for each byte at least` : ''}`,
    ],
    ...certainty(w.certainty),
  ]
}

function achievedRow(a: Achieved): Row {
  const shareText = (share: number | null): string => (share === null ? '' : ` (${percent(share)})`)
  return [
    'achieved',
    `${rate(a.bandwidth)}${shareText(a.bandwidthFraction)}, ${flops(a.flops)}${shareText(a.flopsFraction)}`,
  ]
}

const product = (xs: readonly number[]): string => xs.map(count).join(' × ')

function launchRows(l: LaunchExplanation): Row[] {
  const { resources: r, occupancy: o } = l
  const arrays = l.arrays.map((a): Row => {
    const accesses = [
      a.loads > 0 ? `${count(Math.round(a.loads))} loaded` : '',
      a.stores > 0 ? `${count(Math.round(a.stores))} stored` : '',
      a.atomics > 0 ? `${count(Math.round(a.atomics))} updated atomically` : '',
    ].filter((x) => x !== '')
    return [`  ${a.array}`, `${accesses.join(', ')}; has ${count(a.elements)} of ${a.elementBytes} bytes`]
  })
  const [bytesLeast, bytesAccessed, ...otherRows] = workRows(l)
  return [
    [
      'blocks × threads',
      `${count(l.blocks)} × ${count(l.threads)} (${product(l.grid)} of ${product(l.block)})`,
    ],
    [
      'registers',
      r
        ? `${r.registers} a thread, ${r.local > 0 ? `and ${r.local} bytes of local memory` : 'no local memory'}`
        : 'not known',
    ],
    ['shared memory', `${count(r?.shared ?? l.sharedBytes)} bytes a block`],
    ...(o
      ? [
          [
            'occupancy',
            `${o.blocks} blocks, ${o.warps} of ${o.maxWarps} warps a multiprocessor (${percent(o.warps / o.maxWarps)}), limited by ${o.limitedBy}; ${o.waves === 1 ? 'one wave' : `${count(o.waves)} waves`}`,
          ] as const,
        ]
      : []),
    bytesLeast!,
    bytesAccessed!,
    ...arrays,
    ...otherRows,
    ...(l.time ? [timeRow(l.time)] : []),
    ...(l.achieved ? [achievedRow(l.achieved)] : []),
    ...(l.roof ? [roofRow(l.roof, l.time)] : []),
  ]
}

/** Row that explains why rates have no percentages, if ceilings are not measured. */
const ceilingsRow = ({ device, deviceName }: Explanation): Row[] =>
  deviceName === null || ceilingsOf(device, deviceName)
    ? []
    : [
        [
          'ceilings',
          `not measured for ${deviceName}: so there are no percentages and no bounds (spt calibrate --device ${device} measures them)`,
        ],
      ]

function rowsText(rows: readonly Row[], indent: string, minWidth: number): string {
  const width = Math.max(minWidth, ...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${indent}${name.padEnd(width)} ${value}\n`).join('')
}

/** The condition by which a schedule was selected. */
export function selectionText(selection: Selection): string {
  if (selection.schedule === null) return `by ${ruleText(selection)}`
  return `by ${selection.dispatch}: ${selection.reason}${selection.declaredBy ? `, of ${selection.declaredBy}` : ''}`
}

/** The report. `forms` start with the form that runs; `noTimeReason` states why no time was measured. */
export function explanationText(
  e: Explanation,
  {
    schedule,
    selection,
    forms,
  }: Pick<ScheduledKernel, 'schedule' | 'selection'> & { readonly forms: readonly Form[] },
  noTimeReason: string | null,
): string {
  const sizes = Object.entries(e.sizes).map(([name, n]) => `${name} = ${Number.isInteger(n) ? count(n) : n}`)
  const isMultiStep = e.steps.length > 1
  const header: Row[] = [
    ['kernel', e.kernel],
    [
      'device',
      e.deviceName === null || e.deviceName === e.device ? e.device : `${e.device} (${e.deviceName})`,
    ],
    ['schedule', schedule ?? 'none'],
    ...(selection ? [['selected', selectionText(selection)] as const] : []),
    ...(selection ? predictedRow(selection, e.device, e.deviceName) : []),
    ...formRows(forms, costModelText(forms[0]?.costModel, e.device, e.deviceName)),
    summationRow(e.unorderedSums),
    ['sizes', sizes.join(', ') || 'none'],
    ...(noTimeReason === null ? [] : [['time', `not measured: ${noTimeReason}`] as const]),
    ...ceilingsRow(e),
    ...(isMultiStep && e.time ? [timeRow(e.time)] : []),
    ...(isMultiStep ? workRows(e.total) : []),
    ...(isMultiStep && e.achieved ? [achievedRow(e.achieved)] : []),
    ...(isMultiStep && e.roof ? [roofRow(e.roof, e.time)] : []),
  ]
  const steps = e.steps.map((s, k) =>
    s.kind === 'clear'
      ? `\nstep ${k + 1}: clear ${s.array}, ${bytes(s.bytes)}\n`
      : `\nstep ${k + 1}: launch ${s.name}\n${rowsText(launchRows(s), '  ', 17)}`,
  )
  return rowsText(header, '', 9) + steps.join('')
}

/** Report row on bitwise reproducibility. */
export function summationRow(sums: readonly UnorderedSum[]): readonly [string, string] {
  if (sums.length === 0) return ['sums', 'in a fixed order: equal inputs give equal bits']
  const launches = new Map<string, number>()
  for (const { buffer, reducer } of sums)
    launches.set(`${buffer} (${reducer})`, (launches.get(`${buffer} (${reducer})`) ?? 0) + 1)
  const sumTexts = [...launches].map(([sum, n]) => (n > 1 ? `${sum} in ${n} launches` : sum))
  return [
    'sums',
    `NOT REPRODUCIBLE: threads update ${sumTexts.join(', ')} atomically in any order, so runs differ in the last bits`,
  ]
}
