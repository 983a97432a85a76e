/** Reports of `spt format`: tables for people, an object for programs. */

import { escapeLine } from '../../ast/diagnostics/render.ts'
import { alignedColumns } from '../../ast/print/message-text.ts'
import type { Provenance } from '../../formats/proof/provenance.ts'
import type { LengthReport, PartReport, TensorReport } from '../../pictures/format-figures.ts'
import { count, linesText, ms, percent, size } from '../output/figures.ts'

/** Figures of an unformatted tensor. */
interface PlainReport {
  readonly shape: readonly number[]
  readonly dtype: TensorReport['dtype']
  readonly stored: number
  readonly lengths: readonly LengthReport[]
  readonly compressedBytes: number
}

export interface FormatReport {
  readonly tensor: string
  /** Padding zeros in the blocks of the file. */
  readonly zeros: number
  /** Names of the dimensions, if a format defines them. */
  readonly over: readonly string[] | null
  readonly report: PlainReport | TensorReport
  /** Milliseconds to build the format; `null` without a format. */
  readonly build: number | null
  readonly provenance: Provenance | null
}

export function reportText(r: FormatReport): string {
  const { report } = r
  return [
    heading(r),
    ...('parts' in report ? [partTable(report), totals(report, r.build!)] : []),
    ...lengthTables(r),
    ...(r.provenance ? [proofTables(r.provenance)] : []),
  ].join('\n')
}

export const reportJson = (r: FormatReport): string => `${JSON.stringify(r, null, 2)}\n`

function heading({ tensor, zeros, report }: FormatReport): string {
  const { shape, stored, dtype } = report
  const elements = shape.reduce((a, b) => a * b, 1)
  return linesText({
    tensor: `${escapeLine(tensor)}: ${shape.map(count).join(' × ')}, ${dtype}`,
    nonzeros: `${count(stored)} (${percent(elements === 0 ? 0 : stored / elements)} of all elements)`,
    zeros: zeros > 0 ? `${count(zeros)} of stored blocks are padding, left out` : null,
    ...('parts' in report ? { format: report.format } : { 'compressed rows': size(report.compressedBytes) }),
  })
}

function partTable(report: TensorReport): string {
  const head = 'part,format,rows,nonzeros,slots,padding,,index arrays,values,both'.split(',')
  const figures = (t: PartReport | TensorReport): string[] => [
    ...[t.stored, t.slots, t.padding].map(count),
    percent(t.paddingShare),
    ...[t.structureBytes + t.tableBytes, t.valueBytes, t.bytes].map(size),
  ]
  const body = report.parts.map((p) => [
    p.label || '-',
    p.format + measuredText(p.parameters),
    count(p.rows),
    ...figures(p),
  ])
  const total = ['total', '', '', ...figures(report)]
  return table([head, ...body, ...(body.length > 1 ? [total] : [])], 2)
}

const measuredText = (sizes: Readonly<Record<string, number>>): string => {
  const entries = Object.entries(sizes).map(([name, n]) => `${name} = ${count(n)}`)
  return entries.length === 0 ? '' : ` (${entries.join(', ')})`
}

function totals(report: TensorReport, build: number): string {
  const { bytes, compressedBytes } = report
  const ratio = bytes / compressedBytes
  return linesText({
    'compressed rows': `${size(compressedBytes)}; this format takes ${ratio.toFixed(2)} times as much`,
    build: ms(build),
  })
}

function lengthTables({ report, over }: FormatReport): string[] {
  const names =
    report.shape.length === 2
      ? ['rows', 'columns']
      : report.shape.map((_, d) => `dimension ${over?.[d] ?? d + 1}`)
  const summary = table(
    [
      ['nonzeros in', 'number', 'empty', 'min', 'mean', 'median', 'max'],
      ...report.lengths.map((l, d) => [
        names[d]!,
        count(l.segments),
        count(l.empty),
        count(l.min),
        l.mean.toFixed(2),
        String(l.median),
        count(l.max),
      ]),
    ],
    1,
  )
  const [first] = report.lengths
  return first && report.shape.length > 1 ? [summary, histogram(names[0]!, first)] : [summary]
}

const BAR = 40

/** Classes by powers of two, a bar for each. */
function histogram(title: string, { histogram: classes }: LengthReport): string {
  const largest = classes.reduce((m, c) => Math.max(m, c.segments), 1)
  const body = classes.map(({ upTo, segments }, k) => {
    const from = k === 0 ? 0 : classes[k - 1]!.upTo + 1
    const bar = '#'.repeat(segments === 0 ? 0 : Math.max(1, Math.round((BAR * segments) / largest)))
    return [from === upTo ? count(upTo) : `${count(from)} … ${count(upTo)}`, count(segments), bar]
  })
  return table([['nonzeros', title, ''], ...body], 0, [2])
}

const PROOF_TEXTS = { construction: 'by construction', proved: 'proved', checked: 'checked' } as const

/** One line for each kind of node, then one for each format. */
function proofTables({ parts, nodes }: Provenance): string {
  const lines = (head: readonly string[], body: readonly (readonly string[])[]): string => {
    const distinct = new Map(body.map((line) => [line.join('\n'), line]))
    return body.length === 0 ? '' : table([head, ...distinct.values()], head.length)
  }
  return [
    lines(
      ['split', 'parts are disjoint', 'parts cover the tensor'],
      nodes.map((n) => [n.node, PROOF_TEXTS[n.disjoint], PROOF_TEXTS[n.cover]]),
    ),
    lines(
      ['format', 'map and inverse agree', 'coordinates are in range'],
      parts.map((p) => [p.format, PROOF_TEXTS[p.inverse], PROOF_TEXTS[p.range]]),
    ),
  ]
    .filter((t) => t !== '')
    .join('\n')
}

/** Aligned columns: the first `texts` and those in `left` are left-aligned, numbers right-aligned. */
const table = (lines: readonly (readonly string[])[], texts: number, left: readonly number[] = []): string =>
  alignedColumns(lines, (k) => k >= texts && !left.includes(k))
    .map((line) => `${line}\n`)
    .join('')
