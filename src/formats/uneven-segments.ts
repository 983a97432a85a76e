/** Formats that suit segments of very different lengths, judged by their descriptions. */
import { hasIndices, hasIndptr, parentOf, type StoredAxis, segmentSize } from '../ir/coordinates/axis.ts'
import type { Format, OrderedFormat, PartRule } from '../ir/formats/format.ts'
import type { Query } from '../ir/formats/queries.ts'

/**
 * True if segments are assigned to parts by their lengths, or if every element is stored separately: long segments can
 * then be treated differently.
 */
export const suitsUnevenSegments = (format: OrderedFormat): boolean =>
  format.kind === 'composition' ? format.parts.some(selectsByLength) : holdsElements(format)

function selectsByLength(rule: PartRule): boolean {
  if (rule.kind === 'bucket') return true
  if (rule.kind === 'partition') return rule.parts.some(selectsByLength)
  return rule.where !== null && rule.queries.some(isLength)
}

/** True for the length of a whole segment; counts in blocks are densities. */
const isLength = (q: Query): boolean => q.kind === 'count' && q.by.every((e) => e.kind === 'var')

/** True for a list of positions with one element each. */
function holdsElements({ axes }: Format): boolean {
  const [root, ...otherAxes] = axes
  const isSingle = (a: StoredAxis): boolean => {
    const size = segmentSize(a)
    return size?.kind === 'const' && size.value === 1
  }
  return (
    root !== undefined &&
    hasIndptr(root) &&
    hasIndices(root) &&
    parentOf(root) === null &&
    otherAxes.length > 0 &&
    otherAxes.every(isSingle)
  )
}
