/** Elements of ready-made arrays over a tensor's own axes: no two have equal coordinates, unless they stay apart. */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { concat } from '../../columns/allocate.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'
import { firstPosition, type Level } from '../../columns/stored-level.ts'
import { isInjective } from '../../formats/proof/prove.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { hasWidth, isNonunique, isSparse, repeatsCoordinates, sourceName } from '../../ir/coordinates/axis.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { differing, expandTree, toCoords } from '../entries/stored-coords.ts'
import { type Storage, separatesDuplicates } from '../storage.ts'
import type { CoordTensor, StoredTensor, ValueArray } from '../tensor.ts'

/** Checks that no coordinate is stored twice, tree by tree: coordinates differ if those on one tree do. */
export function checkElements(
  storage: Storage,
  { values, dtype }: Pick<StoredTensor, 'values' | 'dtype'>,
  {
    name = 'what is bound',
    fill = 0,
  }: { readonly name?: string | undefined; readonly fill?: number | undefined },
): void {
  if (separatesDuplicates(storage.axes)) return
  storage.trees.forEach((tree, t) => {
    const axes = tree.map((l) => l.axis)
    if (!axes.some(isNonunique)) return
    const { positions, coords } = expandTree(tree)
    const occupied =
      values && hasSpareSlots(axes) ? occupiedPositions(storage, t, differing(values, dtype, fill)) : null
    checkDisjoint({
      axes,
      shape: tree.map((l) => l.extent),
      parts: [
        {
          name,
          columns: occupied ? coords.map((c) => c.filter((_, e) => occupied[positions[e]!] === 1)) : coords,
          unique: false,
        },
      ],
      separateDuplicates: separatesDuplicates(storage.axes),
      ...(storage.trees.length > 1 && {
        unique: 'add the duplicates up: axes of several trees keep none apart, nonunique or not',
      }),
    })
  })
}

/**
 * The elements of ready-made arrays. If no slot under an existing position holds an element, its last slot is
 * an element with the fill value: a `dense_variable` axis ends with its element.
 */
export function elementsOf(storage: Storage, values: ValueArray, dtype: Dtype, fill: number): CoordTensor {
  const hasSpare = (tree: readonly Level[]): boolean => hasSpareSlots(tree.map((l) => l.axis))
  if (!storage.trees.some(hasSpare)) return toCoords(storage, values, dtype)
  const elements = differing(values, dtype, fill)
  const occupied = storage.trees.map((tree, t) => {
    if (!hasSpare(tree)) return null
    const occupied = occupiedPositions(storage, t, elements)
    markLastSlots(tree, occupied)
    return occupied
  })
  return toCoords(storage, values, dtype, occupied)
}

/**
 * True if there are slots for other coordinates next to an element; they hold the fill value. A position of a nonunique
 * axis exists for one element (`nonunique-positions.ts`), and dense axes under that axis have further slots.
 */
const hasSpareSlots = (axes: readonly StoredAxis[]): boolean =>
  !isSparse(axes.at(-1)) && axes.some((a, d) => isNonunique(a) && !hasWidth(axes[d + 1]))

/** 1 at each position of a tree that holds one of `elements`, for any positions on the other trees. */
function occupiedPositions({ trees }: Storage, t: number, elements: Int32Array): Uint8Array {
  const sizes = trees.map((tree) => tree.at(-1)!.positions)
  const stride = sizes.slice(t + 1).reduce((a, b) => a * b, 1)
  const occupied = new Uint8Array(sizes[t]!)
  for (const e of elements) occupied[Math.floor(e / stride) % sizes[t]!] = 1
  return occupied
}

/** Marks the last slot under each position of the innermost sparse axis that has no marked slot. */
function markLastSlots(chain: readonly Level[], occupied: Uint8Array): void {
  const depth = chain.findLastIndex((l) => isSparse(l.axis))
  const dense = chain.slice(depth + 1)
  for (let p = 0; p < chain[depth]!.positions; p++) {
    const start = dense.reduce((q, l) => firstPosition(l, q), p)
    const end = dense.reduce((q, l) => firstPosition(l, q), p + 1)
    if (end > start && !occupied.subarray(start, end).includes(1)) occupied[end - 1] = 1
  }
}

// Disjointness of ready-made arrays: each coordinate is stored at most once, across the parts of a tensor and
// within each part.

interface StoredCoordinates {
  readonly axes: readonly Pick<StoredAxis, 'name' | 'copyOf'>[]
  readonly shape: readonly number[]
  readonly parts: readonly {
    readonly name: string
    /** One array per axis. */
    readonly columns: readonly Int32Array[]
    /** The levels are validated to store each coordinate once (`levelsAreUnique`). */
    readonly unique: boolean
  }[]
  /** Elements with equal coordinates are separate elements (`separatesDuplicates`). */
  readonly separateDuplicates: boolean
  /** Hint if two parts store one coordinate. */
  readonly hint?: string
  /** Hint if one part stores a coordinate twice. */
  readonly unique?: string
}

/** Levels valid in each segment repeat no coordinate if no axis does, and formats keep coordinates apart. */
export const levelsAreUnique = (
  levels: readonly StoredAxis[],
  formats: readonly { readonly instance: FormatInstance; readonly dims: readonly string[] }[],
): boolean => !levels.some(repeatsCoordinates) && formats.every((f) => isInjective(f.instance, f.dims))

/** True if no check is needed: there is at most one part, and it stores no coordinate twice, or may do so. */
export const isKnownDisjoint = (
  parts: readonly { readonly unique: boolean }[],
  separateDuplicates: boolean,
): boolean => parts.length < 2 && parts.every((p) => p.unique || separateDuplicates)

const DUPLICATE_HINT = 'add the duplicates up, or declare an axis of the tensor nonunique'

/** Linear in sorted coordinates. @throws SptError `format/overlap` (two parts), `bind/duplicate` (within one part) */
export function checkDisjoint({
  axes,
  shape,
  parts,
  separateDuplicates,
  hint,
  unique = DUPLICATE_HINT,
}: StoredCoordinates): void {
  if (isKnownDisjoint(parts, separateDuplicates)) return
  const columns = axes.map((_, d) => concat(parts.map((p) => p.columns[d]!)))
  const starts: number[] = []
  let n = 0
  for (const p of parts) {
    starts.push(n)
    n += p.columns[0]!.length
  }
  const { order, columns: sorted } = lexicographic(
    columns,
    shape.map((x) => Math.max(0, x - 1)),
  )
  const partOf = (s: number): number => {
    const e = order ? order[s]! : s
    // Only the last of several parts with the same start is non-empty.
    return starts.findLastIndex((begin) => begin <= e)
  }
  for (let s = 1; s < n; s++) {
    let equal = true
    for (let d = 0; equal && d < sorted.length; d++) equal = sorted[d]![s] === sorted[d]![s - 1]
    if (!equal) continue
    const [a, b] = [partOf(s - 1), partOf(s)]
    if (a === b && separateDuplicates) continue
    const coordinate = `(${axes.map(sourceName).join(', ')}) = (${sorted.map((c) => c[s]).join(', ')})`
    if (a === b)
      failWith('bind/duplicate', `${parts[a]!.name} holds ${coordinate} twice`, {
        expected: 'each coordinate once',
        hint: unique,
      })
    // Parts with equal names are distinguished by their numbers.
    const partName = (k: number): string =>
      parts[a]!.name === parts[b]!.name ? `${parts[k]!.name} (part ${k + 1})` : parts[k]!.name
    failWith('format/overlap', `${partName(a)} and ${partName(b)} both hold ${coordinate}`, {
      expected: 'each coordinate in one part',
      ...(hint !== undefined && { hint }),
    })
  }
}
