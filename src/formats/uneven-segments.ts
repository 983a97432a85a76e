/** Which formats are of use where segments are of very different lengths, by what their descriptions ask. */
import { hasIndices, hasIndptr, parentOf, type StoredAxis, segmentSize } from '../ir/axis.ts'
import type { Format, OrderedFormat, PartRule } from '../ir/format.ts'
import type { Query } from '../ir/queries.ts'

/** Whether segments go to parts by their lengths, or every element is by itself: then long ones can be treated otherwise. */
export const suitsUnevenSegments = (format: OrderedFormat): boolean =>
  format.kind === 'composition' ? format.parts.some(partsByLength) : holdsElements(format)

function partsByLength(rule: PartRule): boolean {
  if (rule.kind === 'bucket') return true
  if (rule.kind === 'partition') return rule.parts.some(partsByLength)
  return rule.where !== null && rule.queries.some(isLength)
}

/** The elements of whole segments: those of blocks are densities. */
const isLength = (q: Query): boolean => q.kind === 'count' && q.by.every((e) => e.kind === 'var')

/** A list of positions, each of one element. */
function holdsElements({ axes }: Format): boolean {
  const [root, ...others] = axes
  const isSingle = (a: StoredAxis): boolean => {
    const size = segmentSize(a)
    return size?.kind === 'const' && size.value === 1
  }
  return (
    root !== undefined &&
    hasIndptr(root) &&
    hasIndices(root) &&
    parentOf(root) === null &&
    others.length > 0 &&
    others.every(isSingle)
  )
}
