/** Arrays that formats keep in addition to levels and values, by name. */
import type { AnyFormat, FormatInstance, Instance, PartRule } from './format.ts'

/** Diagnostic for a data name that is used both as a list and as a set. */
export const listAndSetDiagnostic = (name: string) =>
  ({
    code: 'format/argument-kind',
    message: `${name} is passed as a list and as a set`,
    expected: 'one kind for each name among the data',
    hint: 'a list holds the boundaries of segments, a set holds coordinates',
  }) as const

/** `name_label`, or `name` if the tensor has one part only (an empty label). */
export const labelled = (name: string, label: string): string => (label === '' ? name : `${name}_${label}`)

/** Name of the size that counts the segments of a list; a space keeps it distinct from names in sources. */
export const segmentsOf = (list: string): string => `segments of ${list}`

/**
 * The arrays of a converted tensor in addition to those of its axes: orders, lists and masks. `name` is the
 * array's own name, and `bindingName` the name by which it is bound. The two differ for lists that come with
 * the data (`isGiven`).
 */
export const additionalArrays = ({
  tables,
  mask,
}: Pick<FormatInstance, 'tables' | 'mask'>): readonly {
  readonly name: string
  readonly bindingName: string
  readonly isGiven: boolean
}[] => [
  ...tables.map(({ name, kind: of, source }) => ({
    name,
    bindingName: of === 'list' ? source : name,
    isGiven: of === 'list',
  })),
  ...(mask === undefined ? [] : [{ name: mask, bindingName: mask, isGiven: false }]),
]

/** Tables of a kernel that hold lists given with the data: the lists are bound, the tables are not. */
export const givenTables = (
  reformats: readonly { readonly instance: Pick<Instance, 'parts'> }[],
): ReadonlySet<string> =>
  new Set(
    reformats.flatMap((r) =>
      r.instance.parts.flatMap((p) => p.instance.tables.flatMap((t) => (t.kind === 'list' ? [t.name] : []))),
    ),
  )

/**
 * Names of the tables for the sorts, lists and masks of a format, including those of a composition's parts. Tables of
 * parts are stored as `NAME_part`.
 */
export function tablesOf(format: AnyFormat): readonly string[] {
  if (format.kind === 'family') return []
  if (format.kind === 'format')
    return [
      ...format.sorts.map((s) => s.at),
      ...format.lists.map((l) => l.axis.name),
      ...(format.mask === undefined ? [] : [format.mask]),
    ]
  const tablesOfRule = (r: PartRule): readonly string[] =>
    r.kind === 'part' ? tablesOf(r.use.format) : r.parts.flatMap(tablesOfRule)
  return format.parts.flatMap(tablesOfRule)
}
