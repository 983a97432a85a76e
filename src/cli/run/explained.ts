/** An explanation as people read it. */

import type { Chosen } from '../../api/choice-conditions.ts'
import type {
  Achieved,
  Explanation,
  LaunchExplanation,
  Roof,
  Times,
  Work,
} from '../../run/explain/explanation.ts'
import { allOperations } from '../../run/explain/roofline.ts'
import { ceilingsOf } from '../../runtime/ceilings.ts'
import { count, ms, percent } from '../figures.ts'
import { byModel, type Form, formRows, notEvaluated, predictedRow } from '../forms.ts'
import type { Scheduled } from '../scheduled-kernel.ts'
import { summationRow } from './summation-row.ts'

type Row = readonly [string, string]

/** Share of both ceilings below which neither is the limit. */
const FAR = 0.3

const scaled = (x: number, units: readonly string[]): string => {
  const k = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log10(Math.max(x, 1)) / 3)))
  const value = x / 1000 ** k
  return `${k === 0 ? count(Math.round(value)) : value.toPrecision(4)} ${units[k]}`.trimEnd()
}
const bytes = (n: number): string => scaled(n, ['bytes', 'kB', 'MB', 'GB', 'TB'])
const many = (n: number): string => scaled(n, ['', 'thousand', 'million', 'billion', 'trillion'])
const rate = (n: number): string => scaled(n, ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s'])
const flops = (n: number): string => scaled(n, ['FLOP/s', 'kFLOP/s', 'MFLOP/s', 'GFLOP/s', 'TFLOP/s'])

const timeRow = (t: Times): Row => [
  'time',
  `${ms(t.median)} (median of ${t.samples}, least ${ms(t.least)}; an empty region takes ${ms(t.floor)})`,
]

function roofRow(roof: Roof, time: Times | null): Row {
  const share = time && time.median > 0 ? `: ${percent(roof.atLeast / time.median)} of this rate reached` : ''
  const far =
    time && roof.atLeast < FAR * time.median
      ? '; neither bytes nor operations on floats limit it, but latency, imbalance, cache traffic or integer arithmetic'
      : ''
  return ['bound', `${roof.by}, at least ${ms(roof.atLeast)}${share}${far}`]
}

function certainty({ share, assumed }: Work['certainty']): Row[] {
  const said = [
    share < 1 ? `estimated from ${percent(share)} of the threads that differ` : '',
    assumed ? 'conditions on what the kernel computes are taken as true' : '',
  ].filter((x) => x !== '')
  return said.length > 0 ? [['counts', said.join('; ')]] : []
}

function workRows(w: Work): Row[] {
  const { least, loaded, stored, sharedLoaded, sharedStored } = w.bytes
  const { plain, matrix16, matrix32, matrixOther } = w.operations
  const units = [
    [plain, 'plain'],
    [matrix16, 'in matrix units, 16 bits'],
    [matrix32, 'in matrix units, tf32'],
    [matrixOther, 'in matrix units'],
  ] as const
  const by = units.filter(([n]) => n > 0).map(([n, name]) => `${many(n)} ${name}`)
  return [
    ['bytes, at least', `${bytes(least)} (each array once)`],
    ['bytes, accessed', `${bytes(loaded)} loaded, ${bytes(stored)} stored (before caches)`],
    ...(sharedLoaded + sharedStored > 0
      ? [['shared, accessed', `${bytes(sharedLoaded)} loaded, ${bytes(sharedStored)} stored`] as const]
      : []),
    [
      'operations',
      `${by.join(', ') || 'none'}${allOperations(w.operations) > 0 ? `; ${w.intensity.toPrecision(3)} for each byte at least` : ''}`,
    ],
    ...certainty(w.certainty),
  ]
}

function achievedRow(a: Achieved): Row {
  const of = (share: number | null): string => (share === null ? '' : ` (${percent(share)})`)
  return ['achieved', `${rate(a.bandwidth)}${of(a.ofBandwidth)}, ${flops(a.flops)}${of(a.ofFlops)}`]
}

const by = (xs: readonly number[]): string => xs.map(count).join(' × ')

function launchRows(l: LaunchExplanation): Row[] {
  const { resources: r, occupancy: o } = l
  const arrays = l.arrays.map((a): Row => {
    const said = [
      a.loads > 0 ? `${count(Math.round(a.loads))} loaded` : '',
      a.stores > 0 ? `${count(Math.round(a.stores))} stored` : '',
      a.atomics > 0 ? `${count(Math.round(a.atomics))} updated atomically` : '',
    ].filter((x) => x !== '')
    return [`  ${a.array}`, `${said.join(', ')}; has ${count(a.elements)} of ${a.elementBytes} bytes`]
  })
  const [bytesLeast, bytesAccessed, ...rest] = workRows(l)
  return [
    ['blocks × threads', `${count(l.blocks)} × ${count(l.threads)} (${by(l.grid)} of ${by(l.block)})`],
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
    ...rest,
    ...(l.time ? [timeRow(l.time)] : []),
    ...(l.achieved ? [achievedRow(l.achieved)] : []),
    ...(l.roof ? [roofRow(l.roof, l.time)] : []),
  ]
}

/** Rates without shares would be taken for an oversight. */
const ceilingsRow = ({ device, deviceName }: Explanation): Row[] =>
  deviceName === null || ceilingsOf(device, deviceName)
    ? []
    : [
        [
          'ceilings',
          `not measured for ${deviceName}: no shares of them, and no bounds (spt calibrate --device ${device} measures them)`,
        ],
      ]

function lines(rows: readonly Row[], indent: string, least: number): string {
  const width = Math.max(least, ...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${indent}${name.padEnd(width)} ${value}\n`).join('')
}

/** The condition by which a schedule was selected. */
export function selectedBy(chosen: Chosen): string {
  if (chosen.schedule === null) return `by ${notEvaluated(chosen)}`
  return `by ${chosen.choice}: ${chosen.because}${chosen.from ? `, of ${chosen.from}` : ''}`
}

/** `forms`: of a kernel without a schedule, the one that runs first. `notMeasured`: why there are no times. */
export function explained(
  e: Explanation,
  { schedule, chosen, forms }: Pick<Scheduled, 'schedule' | 'chosen'> & { readonly forms: readonly Form[] },
  notMeasured: string | null,
): string {
  const sizes = Object.entries(e.sizes).map(([name, n]) => `${name} = ${Number.isInteger(n) ? count(n) : n}`)
  const all = e.steps.length > 1
  const head: Row[] = [
    ['kernel', e.kernel],
    [
      'device',
      e.deviceName === null || e.deviceName === e.device ? e.device : `${e.device} (${e.deviceName})`,
    ],
    ['schedule', schedule ?? 'none'],
    ...(chosen ? [['selected', selectedBy(chosen)] as const] : []),
    ...(chosen ? predictedRow(chosen, e.device, e.deviceName) : []),
    ...formRows(forms, byModel(forms[0]?.expectedBy, e.device, e.deviceName)),
    summationRow(e.unorderedSums),
    ['sizes', sizes.join(', ') || 'none'],
    ...(notMeasured === null ? [] : [['time', `not measured: ${notMeasured}`] as const]),
    ...ceilingsRow(e),
    ...(all && e.time ? [timeRow(e.time)] : []),
    ...(all ? workRows(e.total) : []),
    ...(all && e.achieved ? [achievedRow(e.achieved)] : []),
    ...(all && e.roof ? [roofRow(e.roof, e.time)] : []),
  ]
  const steps = e.steps.map((s, k) =>
    s.kind === 'clear'
      ? `\nstep ${k + 1}: clear ${s.array}, ${bytes(s.bytes)}\n`
      : `\nstep ${k + 1}: launch ${s.name}\n${lines(launchRows(s), '  ', 17)}`,
  )
  return lines(head, '', 9) + steps.join('')
}
