/** Operands of formats: the sizes, lists and sets that they take from the data next to coordinates. */
import { invariant } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Instance } from '../ir/format.ts'
import { segmentsOf } from '../ir/format-tables.ts'
import type { ValueArray } from './tensor.ts'

export interface FormatOperands {
  /** Values of size parameters. */
  readonly sizes: ReadonlyMap<string, number>
  /** By the names of the axes that are replaced. */
  readonly extents: ReadonlyMap<string, number>
  /** Ascending, by name. */
  readonly lists: ReadonlyMap<string, Int32Array>
  /** One coordinate array for each axis that is replaced, by name. */
  readonly sets: ReadonlyMap<string, readonly Int32Array[]>
}

/** A list that comes with the data: its name there, and boundaries, which ascend. */
export interface GivenList {
  readonly name: string
  readonly values: Int32Array
}

/** Values of entries, in storage bits. */
export interface EntryValues {
  readonly values: ValueArray
  readonly dtype: Dtype
}

/** What a format takes of all that comes with the data: others may be called as something of its own. */
export function operandsTakenBy(instance: Pick<Instance, 'given'>, given: FormatOperands): FormatOperands {
  const names = new Set(instance.given.map((g) => g.name))
  const taken = <T>(of: ReadonlyMap<string, T>): Map<string, T> =>
    new Map([...of].filter(([name]) => names.has(name)))
  return { ...given, lists: taken(given.lists), sets: taken(given.sets) }
}

/** A list by its name. */
export function givenList({ lists }: Pick<FormatOperands, 'lists'>, name: string): GivenList {
  const values = lists.get(name)
  invariant(values, `the list ${name} comes with the data`)
  return { name, values }
}

/** The same with the numbers of segments of all lists among the sizes. */
export function withSegments(given: FormatOperands): FormatOperands {
  const sizes = new Map(given.sizes)
  for (const [name, list] of given.lists) sizes.set(segmentsOf(name), list.length - 1)
  return { ...given, sizes }
}
