/** Fill ratios in conditions of dispatches: stored slots of a format / dense size of the tensor. */
import { byName } from '../../ast/by-name.ts'
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import { allocate } from '../../columns/allocate.ts'
import { type Coverage, coverageText, withNumbers } from '../../elaborate/choices/fill-ratios.ts'
import type { AxisStatistic } from '../../elaborate/index.ts'
import type { RuntimeLists } from '../../ir/coordinates/runtime-lists.ts'
import { all, type Expr, not } from '../../ir/expressions/expr.ts'
import { formatOfOrder, type Instance } from '../../ir/formats/format.ts'
import { childrenOf, type PartTree } from '../../ir/formats/part-tree.ts'
import { getOrAdd, memoize } from '../../ir/memoize.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { dependsOnValues } from '../../storage/convert.ts'
import { slotsOf } from '../../storage/entries/stored-parts.ts'
import type { CoordTensor, Tensor } from '../../storage/tensor.ts'
import { givenFor, instanceOf } from '../inputs/format-instances.ts'
import { constantValue, type FillRatioStatistic } from './dispatch-conditions.ts'

// Cache of facts about tensors, valid while the same arrays are bound. Each computation takes milliseconds.

interface Entry<T> {
  readonly arrays: readonly object[]
  readonly shapes: string
  readonly found: T
}

/** Cached results by purpose (`what`) and arrays. */
export class ArrayCache<T> {
  readonly #known = new WeakMap<object, WeakMap<object, Entry<T>>>()

  /** Returns the cached result for the same arrays and shapes, or the new result of `find`. */
  of(what: object, tensors: readonly (readonly [string, Tensor])[], find: () => T): T {
    const arrays = tensors.flatMap(([, t]) => indexArrays(t))
    const shapes = JSON.stringify(tensors.map(([name, t]) => [name, t.shape]))
    const own = getOrAdd(this.#known, what, () => new WeakMap<object, Entry<T>>())
    const [key] = arrays
    const before = key && own.get(key)
    if (
      before?.shapes === shapes &&
      before.arrays.length === arrays.length &&
      before.arrays.every((a, k) => a === arrays[k])
    )
      return before.found
    const found = find()
    if (key) own.set(key, { arrays, shapes, found })
    return found
  }
}

function indexArrays(t: Tensor): readonly object[] {
  if (t.kind === 'dense') return [t.values]
  if (t.kind === 'coords') return t.coords
  // Levels may have further fields, because matrices of other libraries are bound unchanged.
  return Object.values(t.arrays).flatMap((own) => LEVEL_ARRAYS.flatMap((a) => own[a] ?? []))
}

/** Arguments of the format, which are constants by now. */
const argumentsOf = (c: Coverage): readonly (number | string)[] =>
  withNumbers(c, (e) => constantValue(e, c.span)).args.map((a) =>
    typeof a === 'string' ? a : (a as Extract<Expr, { kind: 'const' }>).value,
  )

/** The format with its arguments. */
export const formatOf = memoize(
  (c: FillRatioStatistic): Instance =>
    'instance' in c ? c.instance : instanceOf(c.format, argumentsOf(c), { span: c.span }),
)

const instanceFor = memoize((c: FillRatioStatistic): Instance => {
  const instance = formatOf(c)
  return c.live ? { ...instance, tree: inOrder(instance.tree) } : instance
})

/** Makes cases exclusive: run-time construction puts an element into the first part whose condition holds. */
function inOrder(tree: PartTree): PartTree {
  if (tree.kind === 'leaf') return tree
  if (tree.kind === 'index') return { ...tree, children: tree.children.map(inOrder) }
  const cases = tree.cases.map(({ where, child, ...c }, k) => {
    const before = tree.cases.slice(0, k).flatMap((x) => (x.where ? [not(x.where)] : []))
    return { ...c, where: where && all([...before, where]), child: inOrder(child) }
  })
  return { ...tree, cases }
}

/** Returns true if every element has a part regardless of the tensor's values. Otherwise only the builder's masks decide. */
export const isWhole = (c: FillRatioStatistic): boolean => {
  const isIn = (tree: PartTree): boolean =>
    tree.kind === 'leaf' ||
    ((tree.kind === 'index' ? tree.total : tree.cases.some((x) => !x.where)) && childrenOf(tree).every(isIn))
  return isIn(instanceFor(c).tree)
}

export const setsOf = (c: FillRatioStatistic): readonly string[] =>
  instanceFor(c).given.flatMap((g) => (g.kind === 'set' ? [g.name] : []))

/** Key of the stored data, independent of the names of arguments. */
const storing = ({ parts, tree }: Instance): string =>
  JSON.stringify([parts.map((p) => p.instance), tree], (key, x: unknown) =>
    key === 'span' || key === 'text' || key === 'constants' ? undefined : x instanceof Map ? [...x] : x,
  )

export function determinesFillRatio({ tensor, format, args }: RuntimeLists, c: FillRatioStatistic): boolean {
  if (tensor !== c.tensor) return false
  const own = formatOf(c)
  return storing(instanceOf(formatOfOrder(format, own.over.length), args)) === storing(own)
}

/** Fill ratio from the measured lengths of the lists, in [0, 1]. */
export function fillRatio(
  { parts }: RuntimeLists,
  counts: readonly ArrayLike<number>[],
  elements: number,
  sizes: ReadonlyMap<string, number>,
): number {
  if (elements === 0) return 0
  let stored = 0
  for (const [part, { lists, width, slots }] of parts.entries()) {
    let listed = 0
    const end = evaluate(lists, sizes)
    for (let k = 0; k < end; k++) listed += Math.ceil(counts[part]![k]! / width) * width
    stored += listed * evaluate(slots, sizes)
  }
  return stored / elements
}

export const needsValues = (c: FillRatioStatistic): boolean => dependsOnValues(instanceFor(c))

/** Numbers of stored slots, by the text of the condition. */
const known = new ArrayCache<Map<string, number>>()

/**
 * Returns stored slots / dense size; 0 for a tensor without elements. Cached for the same arrays.
 * @param elements returns the tensor by coordinates; called only if the result is not cached
 * @param beside list and set arguments of formats
 * @throws SptError `format/…`, `bind/…` if the tensor does not fit the format, or an argument is missing
 */
export function storedFraction(
  c: FillRatioStatistic,
  tensor: Tensor,
  elements: () => CoordTensor,
  beside: Readonly<Record<string, Tensor>>,
): number {
  const elementsInAll = tensor.shape.reduce((a, b) => a * b, 1)
  if (elementsInAll === 0) return 0
  const instance = instanceFor(c)
  const given = byName(
    instance.given.flatMap(({ name }): [string, Tensor][] => {
      const taken = beside[name]
      return taken ? [[name, taken]] : []
    }),
  )
  const values = dependsOnValues(instance) ? valuesOf(tensor) : []
  const [key, text] = 'instance' in c ? [instance, instance.text] : [c.format, coverageText(c)]
  const slots = known.of(key, [[c.tensor, tensor], ...Object.entries(given), ...values], () => new Map())
  const found = getOrAdd(slots, text, () =>
    slotsOf(elements(), instance, givenFor(instance, tensor.shape, given)),
  )
  return found / elementsInAll
}

const valuesOf = ({ shape, values, dtype }: Tensor): readonly (readonly [string, Tensor])[] =>
  values ? [['', { kind: 'dense', shape, values, dtype }]] : []

/** Statistics of segment lengths, in elements. */
export type Lengths = Readonly<Record<AxisStatistic, number>>

/** Statistics of the segments between the offsets `indptr`; `null` for invalid offsets. Linear in the number of segments. */
export function lengthsOf(indptr: ArrayLike<number>): Lengths | null {
  const segments = indptr.length - 1
  if (segments < 0 || indptr[0] !== 0) return null
  let longest = 0
  let shortest = segments > 0 ? Number.POSITIVE_INFINITY : 0
  let empty = 0
  for (let s = 0; s < segments; s++) {
    const length = indptr[s + 1]! - indptr[s]!
    if (length < 0) return null
    if (length > longest) longest = length
    if (length < shortest) shortest = length
    if (length === 0) empty++
  }
  const count = indptr[segments]!
  return { count, longest, shortest, empty, segments, mean: segments > 0 ? count / segments : 0 }
}

/** Offsets of the distinct columns of each row; undefined unless rows and columns are sorted. */
export function offsetsOf(rows: Int32Array, columns: Int32Array, count: number): Int32Array | undefined {
  const offsets = allocate(count + 1, 'offsets')
  let [row, column, positions] = [0, -1, 0]
  for (let e = 0; e < rows.length; e++) {
    const r = rows[e]!
    const c = columns[e]!
    if (r < row || r >= count || (r === row && c < column)) return undefined
    if (r > row) {
      for (; row < r; row++) offsets[row + 1] = positions
      column = -1
    }
    if (c !== column) positions++
    column = c
  }
  for (; row < count; row++) offsets[row + 1] = positions
  return offsets
}
