/**
 * Report of `spt show --attributes`: sparsity of tensors, dead elements, skippable iterations, and the masks that may skip
 * them.
 */
import type {
  AtMask,
  IterationAttributes,
  SparsityAttributes,
  TensorAttributes,
} from '../../analysis/sparsity-attributes.ts'
import type { Kernel } from '../../api/kernel.ts'
import { aligned, namedIn, type Place } from './permutations.ts'

/** @param only - The single iteration to report */
export function attributesReport(kernel: Kernel, only: string | undefined, place: Place): string {
  const { tensors, iterations }: SparsityAttributes = kernel.attributes
  if (only !== undefined) return iterationText(namedIn(kernel, iterations, only), place)
  const rows = tensors.flatMap((t) => rowsOf(t, place))
  return [
    `kernel ${kernel.name}\n${aligned(rows)}`,
    ...iterations.map((it) => iterationText(it, place)),
  ].join('\n')
}

/** The tensor and its value, then a line for each mask with a statement about it. */
function rowsOf(t: TensorAttributes, place: Place): string[][] {
  const value = t.constant !== null && t.value === 'constant' ? `constant ${t.constant}` : t.value
  const masks = [...new Set([...t.atFill, ...t.neededWhere].map(maskText))]
  const lines = masks.map((mask) => {
    const at = t.atFill.find((x) => maskText(x) === mask)
    const needed = t.neededWhere.some((x) => maskText(x) === mask)
    return [
      ...(at ? [`${at.zero ? 'zero' : `constant ${at.value}`} where ${mask} is at its fill`] : []),
      ...(needed ? [`needed only where ${mask} is not`] : []),
    ].join(', ')
  })
  const need = t.need ? [`needed everywhere: ${t.need.reason}${place(t.need.span)}`] : []
  const [first = '', ...others] = [...(t.read ? [] : ['never read']), ...lines, ...need]
  return [[t.tensor, value, first], ...others.map((line) => ['', '', line])]
}

/** `M[i, j]`, at the axes of the tensor. */
const maskText = ({ mask, dimensions }: AtMask): string =>
  `${mask}[${dimensions.map((d) => d.axis).join(', ')}]`

function iterationText(it: IterationAttributes, place: Place): string {
  const rows = [
    ...(it.read ? [] : [['never read', '']]),
    ...(it.needless ? [['may be dropped', '']] : []),
    ...it.masks.map(({ mask, iterators }) => ['masked by', `${mask}[${iterators.join(', ')}]`]),
    ...it.refusals.map(({ mask, reason, span }) => ['not by', `${mask}: ${reason}${place(span)}`]),
  ]
  return `iteration ${it.name}\n${aligned(rows)}`
}
