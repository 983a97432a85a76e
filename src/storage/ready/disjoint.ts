/**
 * Disjointness of ready-made arrays: each coordinate is stored at most once, across the parts of a tensor and within
 * each part.
 */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { concat } from '../../columns/allocate.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'
import { isInjective } from '../../formats/proof/proved.ts'
import { repeatsCoordinates, type StoredAxis, sourceName } from '../../ir/coordinates/axis.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'

export interface StoredCoordinates {
  /** The tensor's axes. */
  readonly axes: readonly Pick<StoredAxis, 'name' | 'copyOf'>[]
  readonly shape: readonly number[]
  /** For each part, one array of coordinates per axis. */
  readonly parts: readonly {
    readonly name: string
    readonly columns: readonly Int32Array[]
    /** Its levels have been validated to store each coordinate once (`levelsAreUnique`). */
    readonly unique: boolean
  }[]
  /** Elements with equal coordinates are separate elements (`separatesDuplicates`). */
  readonly separateDuplicates: boolean
  /** Hint if two parts store one coordinate. */
  readonly hint?: string
  /** Hint if one part stores a coordinate twice. */
  readonly unique?: string
}

/**
 * True if levels that are validated segment by segment cannot store a coordinate of the tensor twice: no axis repeats
 * coordinates, and each format maps different stored coordinates to different ones of the tensor.
 */
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

/**
 * Checks that coordinates are stored once; linear if they are in order, otherwise by sorting. @throws SptError
 * `format/overlap` with the first coordinate that two parts store; `bind/duplicate` with one that is stored twice,
 * unless equal coordinates stay apart
 */
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
      fail({
        code: 'bind/duplicate',
        message: `${parts[a]!.name} holds ${coordinate} twice`,
        expected: 'each coordinate once',
        hint: unique,
      })
    // Parts with equal names are distinguished by their numbers.
    const partName = (k: number): string =>
      parts[a]!.name === parts[b]!.name ? `${parts[k]!.name} (part ${k + 1})` : parts[k]!.name
    fail({
      code: 'format/overlap',
      message: `${partName(a)} and ${partName(b)} both hold ${coordinate}`,
      expected: 'each coordinate in one part',
      ...(hint !== undefined && { hint }),
    })
  }
}
