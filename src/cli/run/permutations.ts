/**
 * Report of `spt show --pit`: dimensions that may be permuted, and formats that gather along them (permutation-invariant
 * transformation).
 */
import type { PermutableDimension, PermutableIteration } from '../../analysis/permutable-dimensions.ts'
import type { Kernel } from '../../api/kernel.ts'
import type { MicroTile } from '../../api/micro-tiles.ts'
import { alignedColumns } from '../../ast/aligned-columns.ts'
import { fail, type Source, type Span } from '../../ast/diagnostic.ts'
import { position, Text } from '../../ast/source-frame.ts'
import { sourceOf } from '../../ast/span.ts'

export type Place = (span: Span | undefined) => string

/**
 * @param only - The single iteration to report
 * @param tile - Extents of the dense tile by axis
 */
export function permutationReport(
  kernel: Kernel,
  only: string | undefined,
  tile: Readonly<Record<string, number>>,
  place: Place,
): string {
  const { kernel: whole, iterations } = kernel.permutable
  if (only !== undefined) return tableOf(namedIn(kernel, iterations, only), place)
  const each = iterations.length > 1 ? iterations.map((it) => tableOf(it, place)) : []
  return [
    `kernel ${kernel.name}\n${rowsOf(whole, place)}`,
    ...each,
    ...rulesText(kernel.microTiles(tile)),
  ].join('\n')
}

/** @throws SptError `show/unknown-iteration` */
export function namedIn<T extends { readonly name: string }>(
  kernel: Kernel,
  all: readonly T[],
  name: string,
): T {
  const candidates = all.map((it) => it.name)
  return (
    all.find((it) => it.name === name) ??
    fail({
      code: 'show/unknown-iteration',
      message: `kernel ${kernel.name} has no iteration ${name}`,
      lookup: { name, candidates },
      expected: `one of ${candidates.join(', ')}`,
    })
  )
}

/** Line and column in one of these texts. */
export const placesIn =
  (sources: ReadonlyMap<string, Source>): Place =>
  (span) => {
    const source = span && sourceOf(span, sources)
    if (!source) return ''
    const { line, column } = position(new Text(source.text), span.start)
    return ` (${line}:${column})`
  }

const tableOf = (it: PermutableIteration, place: Place): string =>
  `iteration ${it.name}\n${rowsOf(it.dimensions, place)}`

const rowsOf = (dimensions: readonly PermutableDimension[], place: Place): string =>
  aligned(
    dimensions.map((d) => [
      d.tensor,
      d.axis,
      d.refusal ? 'no' : 'yes',
      d.refusal ? `${d.refusal.reason}${place(d.refusal.span)}` : effectOf(d),
    ]),
  )

function effectOf({ alike, results }: PermutableDimension): string {
  const others = [...new Set(alike.map((x) => x.axis))].map((axis) => {
    const tensors = alike.filter((x) => x.axis === axis).map((x) => x.tensor)
    return `${axis} of ${tensors.join(', ')}`
  })
  return `${others.length > 0 ? `with ${others.join(' and ')}: ` : ''}results are ${results}`
}

function rulesText(rules: readonly MicroTile[]): string[] {
  if (rules.length === 0) return []
  const rows = rules.map(({ dimension: { tensor, axis }, extents, tile, format, refusal }) => {
    const dense = Object.entries(tile).map(([name, n]) => `${name} = ${n}`)
    const names = format ? [nameIn(format.text), ...format.known].join(', ') : `no format: ${refusal}`
    return [tensor, axis, extents.join(' × '), `of ${dense.join(', ')}`, names]
  })
  return [`micro-tiles\n${aligned(rows)}`, ...rules.flatMap(({ format }) => (format ? [format.text] : []))]
}

const nameIn = (text: string): string => text.split(' ')[1]!

export const aligned = (rows: readonly (readonly string[])[]): string =>
  alignedColumns(rows)
    .map((line) => `  ${line}\n`)
    .join('')
