/** Arrays that maps and inverse maps load, and the sizes that come with them. */
import { invariant } from '../ast/diagnostic.ts'
import { allocate } from '../columns/allocate.ts'
import type { MapTable } from '../columns/expression-program.ts'
import { evaluate } from '../ir/evaluate.ts'
import type { FormatInstance, Table } from '../ir/format.ts'
import type { Given } from './given.ts'

/** The name of the size that counts the segments of a list. */
export const segmentsOf = (list: string): string => `${list}_segments`

/** The same with the numbers of segments of all lists among the sizes. */
export function withSegments(given: Given): Given {
  const sizes = new Map(given.sizes)
  for (const [name, list] of given.lists) sizes.set(segmentsOf(name), list.length - 1)
  return { ...given, sizes }
}

/**
 * The tables of a format by name, as long as kernels expect them, with the fill behind what they hold; and lists.
 * @param permutations the `at` of sorts by name
 */
export function tablesOf(
  instance: FormatInstance,
  given: Given,
  permutations: ReadonlyMap<string, Int32Array>,
): Map<string, MapTable> {
  const own = instance.tables.map((t) => [t.name, tableOf(t, given, permutations)] as const)
  return new Map([...listsOf(given), ...own])
}

/** Lists by the names that they have among the data, as expressions load them. */
export const listsOf = (given: Given): ReadonlyMap<string, MapTable> =>
  new Map([...given.lists].map(([name, values]) => [name, { values, fill: values.at(-1) ?? 0 }]))

function tableOf(table: Table, given: Given, permutations: ReadonlyMap<string, Int32Array>): MapTable {
  const from = table.of === 'list' ? given.lists.get(table.source) : permutations.get(table.source)
  invariant(from, `nothing gives the table ${table.name}`)
  const length = evaluate(table.length, given.sizes)
  const fill = evaluate(table.fill, given.sizes)
  if (length === from.length) return { values: from, fill }
  invariant(length > from.length, `table ${table.name} is shorter than what it holds`)
  const values = allocate(length, `elements of ${table.name}`).fill(fill)
  values.set(from)
  return { values, fill }
}
