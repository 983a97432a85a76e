/** What formats keep beside levels and values, by name. */
import type { AnyFormat, FormatInstance, Instance, PartRule } from './format.ts'

/** Where a name among the data is asked for as a list and as a set. */
export const passedAsBoth = (name: string) =>
  ({
    code: 'format/argument-kind',
    message: `${name} is passed as a list and as a set`,
    expected: 'one kind for each name among the data',
    hint: 'a list holds the boundaries of segments, a set holds coordinates',
  }) as const

/** `name_label`, or the name where there is one part. */
export const labelled = (name: string, label: string): string => (label === '' ? name : `${name}_${label}`)

/** The size that counts the segments of a list; nothing that a text names is called so. */
export const segmentsOf = (list: string): string => `segments of ${list}`

/**
 * The arrays that ready-made parts come with beside those of axes, orders, lists and masks, which a tensor makes: their names, and
 * those that they are bound by, which are others for lists that come with the data. `isGiven`: whether one is such a list.
 */
export const arraysBeside = ({
  tables,
  mask,
}: Pick<FormatInstance, 'tables' | 'mask'>): readonly {
  readonly name: string
  readonly bound: string
  readonly isGiven: boolean
}[] => [
  ...tables.map(({ name, of, source }) => ({
    name,
    bound: of === 'list' ? source : name,
    isGiven: of === 'list',
  })),
  ...(mask === undefined ? [] : [{ name: mask, bound: mask, isGiven: false }]),
]

/** The tables of a kernel that hold lists that come with the data: these are bound, the tables are not. */
export const tablesOfGiven = (
  reformats: readonly { readonly instance: Pick<Instance, 'parts'> }[],
): ReadonlySet<string> =>
  new Set(
    reformats.flatMap((r) =>
      r.instance.parts.flatMap((p) => p.instance.tables.flatMap((t) => (t.of === 'list' ? [t.name] : []))),
    ),
  )

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
