/**
 * Report of `spt show --attributes`: sparsity of tensors, dead elements, skippable iterations, and the masks that may skip
 * them.
 */
import type {
  IterationAttributes,
  SparsityAttributes,
  TensorAttributes,
  TensorMask,
} from '../../analysis/sparsity/attributes.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { findIteration, indentedTable, type Locate } from './permutations.ts'

/** @param iteration - The single iteration to report */
export function attributesReport(kernel: Kernel, iteration: string | undefined, locate: Locate): string {
  const { tensors, iterations }: SparsityAttributes = kernel.attributes
  if (iteration !== undefined) return iterationText(findIteration(kernel, iterations, iteration), locate)
  const rows = tensors.flatMap((t) => rowsOf(t, locate))
  return [
    `kernel ${kernel.name}\n${indentedTable(rows)}`,
    ...iterations.map((entry) => iterationText(entry, locate)),
  ].join('\n')
}

/** The tensor and its value, then a line for each mask with a statement about it. */
function rowsOf(t: TensorAttributes, locate: Locate): string[][] {
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
