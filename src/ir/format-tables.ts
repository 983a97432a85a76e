/** What formats keep beside levels and values, by name. */
import type { AnyFormat, FormatInstance, PartRule } from './format.ts'

/** Names of the arrays that ready-made parts come with beside those of axes: orders, lists and masks, which a tensor makes. */
export const namesBeside = ({ tables, mask }: Pick<FormatInstance, 'tables' | 'mask'>): readonly string[] => [
  ...tables.map((t) => t.name),
  ...(mask === undefined ? [] : [mask]),
]

/** The tables that the sorts and lists of a format, its mask, or those of the formats of its parts, are kept in; those of parts go by `NAME_part`. */
export function tablesOf(format: AnyFormat): readonly string[] {
  if (format.kind === 'family') return []
  if (format.kind === 'format')
    return [
      ...format.sorts.map((s) => s.at),
      ...format.lists.map((l) => l.axis.name),
      ...(format.mask === undefined ? [] : [format.mask]),
    ]
  const of = (r: PartRule): readonly string[] =>
    r.kind === 'part' ? tablesOf(r.use.format) : r.parts.flatMap(of)
  return format.parts.flatMap(of)
}
