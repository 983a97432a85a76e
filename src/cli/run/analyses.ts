/**
 * Reports of `spt show --pit` (dimensions that may be permuted, and formats that gather along them: permutation-invariant
 * transformation) and `--attributes` (sparsity of tensors, dead elements, skippable iterations, masks that may skip them).
 */
import type {
  PermutableDimension,
  PermutableIteration,
} from '../../analysis/permutations/permutable-dimensions.ts'
import type {
  IterationAttributes,
  SparsityAttributes,
  TensorAttributes,
  TensorMask,
} from '../../analysis/sparsity/attributes.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { MicroTile } from '../../api/kernels/micro-tiles.ts'
import { failWith, type Source, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { position, SourceText } from '../../ast/diagnostics/source-frame.ts'
import { sourceOf } from '../../ast/diagnostics/span.ts'
import { alignedColumns } from '../../ast/print/message-text.ts'

type Locate = (span: Span | undefined) => string

/**
 * @param iteration - The single iteration to report
 * @param tile - Extents of the dense tile by axis
 */
export function permutationReport(
  kernel: Kernel,
  iteration: string | undefined,
  tile: Readonly<Record<string, number>>,
  locate: Locate,
): string {
  const { kernel: kernelDimensions, iterations } = kernel.inspect.permutable
  if (iteration !== undefined) return tableOf(findIteration(kernel, iterations, iteration), locate)
  const tables = iterations.length > 1 ? iterations.map((it) => tableOf(it, locate)) : []
  return [
    `kernel ${kernel.name}\n${rowsOf(kernelDimensions, locate)}`,
    ...tables,
    ...microTilesText(kernel.inspect.microTiles(tile)),
  ].join('\n')
}

/** @throws SptError `show/unknown-iteration` */
function findIteration<T extends { readonly name: string }>(
  kernel: Kernel,
  iterations: readonly T[],
  name: string,
): T {
  const candidates = iterations.map((it) => it.name)
  return (
    iterations.find((it) => it.name === name) ??
    failWith('show/unknown-iteration', `kernel ${kernel.name} has no iteration ${name}`, {
      lookup: { name, candidates },
      expected: `one of ${candidates.join(', ')}`,
    })
  )
}

/** Formats a span as line and column of its source; '' without a span. */
export const sourceLocator =
  (sources: ReadonlyMap<string, Source>): Locate =>
  (span) => {
    const source = span && sourceOf(span, sources)
    if (!source) return ''
    const { line, column } = position(new SourceText(source.text), span.start)
    return ` (${line}:${column})`
  }

const tableOf = (it: PermutableIteration, locate: Locate): string =>
  `iteration ${it.name}\n${rowsOf(it.dimensions, locate)}`

const rowsOf = (dimensions: readonly PermutableDimension[], locate: Locate): string =>
  indentedTable(
    dimensions.map((d) => [
      d.tensor,
      d.axis,
      d.obstacle ? 'no' : 'yes',
      d.obstacle ? `${d.obstacle.reason}${locate(d.obstacle.span)}` : effectOf(d),
    ]),
  )

function effectOf({ linkedDimensions, results }: PermutableDimension): string {
  const linkedAxes = [...new Set(linkedDimensions.map((x) => x.axis))].map((axis) => {
    const tensors = linkedDimensions.filter((x) => x.axis === axis).map((x) => x.tensor)
    return `${axis} of ${tensors.join(', ')}`
  })
  return `${linkedAxes.length > 0 ? `with ${linkedAxes.join(' and ')}: ` : ''}results are ${results}`
}

function microTilesText(rules: readonly MicroTile[]): string[] {
  if (rules.length === 0) return []
  const rows = rules.map(({ dimension: { tensor, axis }, extents, tile, format, rejection }) => {
    const dense = Object.entries(tile).map(([name, n]) => `${name} = ${n}`)
    const names = format
      ? [formatName(format.text), ...format.equalFormats].join(', ')
      : `no format: ${rejection}`
    return [tensor, axis, extents.join(' × '), `of ${dense.join(', ')}`, names]
  })
  return [
    `micro-tiles\n${indentedTable(rows)}`,
    ...rules.flatMap(({ format }) => (format ? [format.text] : [])),
  ]
}

const formatName = (text: string): string => text.split(' ')[1]!

const indentedTable = (rows: readonly (readonly string[])[]): string =>
  alignedColumns(rows)
    .map((line) => `  ${line}\n`)
    .join('')

/** @param iteration - The single iteration to report */
export function attributesReport(kernel: Kernel, iteration: string | undefined, locate: Locate): string {
  const { tensors, iterations }: SparsityAttributes = kernel.inspect.attributes
  if (iteration !== undefined) return iterationText(findIteration(kernel, iterations, iteration), locate)
  const rows = tensors.flatMap((t) => attributeRows(t, locate))
  return [
    `kernel ${kernel.name}\n${indentedTable(rows)}`,
    ...iterations.map((entry) => iterationText(entry, locate)),
  ].join('\n')
}

/** The tensor and its value, then a line for each mask with a statement about it. */
function attributeRows(t: TensorAttributes, locate: Locate): string[][] {
  const value = t.constant !== null && t.value === 'constant' ? `constant ${t.constant}` : t.value
  const masks = [...new Set([...t.maskedValues, ...t.neededWithin].map(maskText))]
  const lines = masks.map((mask) => {
    const fillEntry = t.maskedValues.find((x) => maskText(x) === mask)
    const isNeeded = t.neededWithin.some((x) => maskText(x) === mask)
    return [
      ...(fillEntry
        ? [`${fillEntry.zero ? 'zero' : `constant ${fillEntry.value}`} where ${mask} is at its fill`]
        : []),
      ...(isNeeded ? [`needed only where ${mask} is not`] : []),
    ].join(', ')
  })
  const reasons = t.need ? [`needed everywhere: ${t.need.reason}${locate(t.need.span)}`] : []
  const [first = '', ...furtherLines] = [...(t.isUsed ? [] : ['never read']), ...lines, ...reasons]
  return [[t.tensor, value, first], ...furtherLines.map((line) => ['', '', line])]
}

/** `M[i, j]`, at the axes of the tensor. */
const maskText = ({ mask, dimensions }: TensorMask): string =>
  `${mask}[${dimensions.map((d) => d.axis).join(', ')}]`

function iterationText(entry: IterationAttributes, locate: Locate): string {
  const rows = [
    ...(entry.isUsed ? [] : [['never read', '']]),
    ...(entry.isDead ? [['may be dropped', '']] : []),
    ...entry.masks.map(({ mask, iterators }) => ['masked by', `${mask}[${iterators.join(', ')}]`]),
    ...entry.rejections.map(({ mask, reason, span }) => ['not by', `${mask}: ${reason}${locate(span)}`]),
  ]
  return `iteration ${entry.name}\n${indentedTable(rows)}`
}
