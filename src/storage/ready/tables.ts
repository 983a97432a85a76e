/** Tables given with ready-made arrays: permutations and lists that inverse maps load, and masks. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Frame } from '../../columns/column-engine.ts'
import { runSync } from '../../columns/coroutines.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import type { FormatInstance, Table } from '../../ir/formats/format.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { MASK_BITS, wordsFor } from '../../ir/values/packed-fields.ts'
import { bindLevel } from '../../levels/index.ts'
import { checkLevelProperty } from '../assembly/level-property-checks.ts'
import { paddedPositions } from '../assembly/padding-positions.ts'
import { HOST } from '../engines/host/engine.ts'
import { entriesOf, isExact, type StoredLevels } from '../entries/entry-enumeration.ts'
import type { Inverse } from '../remapping/inverse-remapping.ts'
import type { Storage } from '../storage.ts'

/**
 * Validates the permutation of a sort: each coordinate once, then fill values. @throws SptError `bind/missing-table`,
 * `bind/table`
 */
export function checkPermutation(
  table: Table,
  values: Int32Array | undefined,
  sizes: ReadonlyMap<string, number>,
): Int32Array {
  const { name } = table
  const n = Math.max(0, evaluate(table.fill, sizes))
  const length = Math.max(0, evaluate(table.length, sizes))
  if (!values)
    return fail({
      code: 'bind/missing-table',
      message: `ready-made parts come without the order that goes with them, ${name}`,
      expected: `an Int32Array of ${length} places: a permutation`,
      hint: `give ${name} with the parts`,
    })
  const seen = new Uint8Array(n)
  for (let p = 0; p < values.length; p++) {
    const c = values[p]!
    // Places beyond the extent are padding.
    if (p >= n ? c === n : c >= 0 && c < n && seen[c] === 0) {
      if (c < n) seen[c] = 1
      continue
    }
    fail({
      code: 'bind/table',
      message: `place ${p} of ${name} is ${c}`,
      expected: p >= n ? `${n}, which is padding` : `each of 0 to ${n - 1} once`,
      hint: 'give the coordinate of each rank',
    })
  }
  if (values.length !== length)
    fail({
      code: 'bind/table',
      message: `${name} has ${values.length} places`,
      expected: `${length} places`,
      hint: 'give the coordinate of each rank, and the extent for the others',
    })
  return values
}

/**
 * Validates the lists of a format that are given with ready-made arrays, as levels under their ancestor axes. @throws
 * SptError `bind/missing-table`, `format/claim`, and as `validateStored`
 */
export function checkLists(
  { lists, tables }: FormatInstance,
  { levels, trees }: Storage,
  arrays: ReadonlyMap<string, Int32Array>,
  sizes: ReadonlyMap<string, number>,
): void {
  for (const { axis, under } of lists) {
    const { name, fill, length } = tables.find((t) => t.name === axis.name)!
    const innermost = under.at(-1)!
    const parent = levels.get(innermost)!
    const width = Math.max(0, evaluate(length, sizes))
    const indices = arrays.get(name)
    if (!indices)
      fail({
        code: 'bind/missing-table',
        message: `ready-made parts come without the list that goes with them, ${name}`,
        expected: `an Int32Array of ${parent.positions * width} coordinates, ${width} for each position of ${innermost}`,
        hint: `give ${name} with the parts`,
      })
    const tree = trees.find((t) => t.includes(innermost))!
    const chain = tree.slice(0, tree.indexOf(innermost) + 1).map((a) => levels.get(a)!)
    const padding = paddedPositions(chain).at(-1) ?? null
    const level = bindLevel(axis, Math.max(0, evaluate(fill, sizes)), parent, { indices }, { width }, padding)
    if (axis.compact) runSync(checkLevelProperty(HOST, [...chain, level], 'compact'))
  }
}

/**
 * Validates the mask given with ready-made arrays: one bit per position on its axes, in whole words. @throws SptError
 * `bind/missing-table`, `bind/table`
 */
export function checkMask(
  name: string,
  axes: readonly string[],
  { levels, trees }: Storage,
  words: Int32Array | undefined,
): Int32Array {
  const innermost = trees.flatMap((tree) => tree.findLast((a) => axes.includes(a)) ?? [])
  const positions = innermost.reduce((n, a) => n * levels.get(a)!.positions, 1)
  const length = wordsFor(positions, MASK_BITS)
  if (words?.length === length) return words
  return fail({
    code: words ? 'bind/table' : 'bind/missing-table',
    message: words
      ? `${name} has ${words.length} words`
      : `ready-made parts come without the mask that goes with them, ${name}`,
    expected: `an Int32Array of ${length} words: a bit for each of ${positions} positions, the first in the lowest`,
    hint: words ? 'give a bit for each position of the values' : `give ${name} with the parts`,
  })
}

/**
 * Checks that a mask agrees with the levels. If levels alone distinguish elements from padding, for example because the
 * last one is compressed, kernels visit the positions of the levels. The first dimensions of `inverse` are the
 * tensor's. @throws SptError `bind/table`
 */
export function checkMaskAgrees(
  name: string,
  stored: StoredLevels<TypedArray>,
  inverse: Inverse<TypedArray>,
  { filled, order }: { readonly filled: readonly StoredAxis[]; readonly order: number },
): void {
  if (!stored.mask || !isExact(stored.trees, filled)) return
  const entries = (mask: StoredLevels<TypedArray>['mask']) =>
    runSync(entriesOf<TypedArray>(HOST, { ...stored, drop: null, mask: mask ?? null }, inverse))
  const masked = entries(stored.mask)
  const unmasked = entries(null)
  if (masked.n === unmasked.n) return
  const positionOf = (frame: Frame<TypedArray>, e: number): number => frame.entry?.[e] ?? e
  let e = 0
  while (e < masked.n && positionOf(masked, e) === positionOf(unmasked, e)) e++
  const point = inverse.dims.slice(0, order).map((d) => unmasked.column(d.name)![e])
  fail({
    code: 'bind/table',
    message: `${name} has no bit for (${point.join(', ')}), which is stored at position ${positionOf(unmasked, e)}`,
    expected: 'a bit for every element: the coordinates that axes store are those of elements',
    hint: 'give it a bit, or leave the coordinate out of the arrays',
  })
}
