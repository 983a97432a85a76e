/** Parts that are brought ready-made hold each coordinate at most once. */
import { fail } from '../../ast/diagnostic.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'

export interface Claimed {
  /** Of the tensor's axes. */
  readonly axes: readonly string[]
  readonly shape: readonly number[]
  /** One array of coordinates for each axis: those of the first part, of the second, and so on. */
  readonly columns: readonly Int32Array[]
  /** The parts' names, and where the coordinates of each begin. */
  readonly parts: readonly { readonly name: string; readonly begin: number }[]
  readonly hint: string
}

/** @throws SptError `format/overlap`, with the first coordinate that two parts hold */
export function checkDisjoint({ axes, shape, columns, parts, hint }: Claimed): void {
  if (parts.length < 2) return
  const { order, columns: sorted } = lexicographic(
    columns,
    shape.map((x) => Math.max(0, x - 1)),
  )
  const partOf = (s: number): number => {
    const e = order ? order[s]! : s
    // Of parts that begin alike only the last holds anything.
    return parts.findLastIndex((p) => p.begin <= e)
  }
  const n = columns[0]!.length
  for (let s = 1; s < n; s++) {
    let same = true
    for (let d = 0; same && d < sorted.length; d++) same = sorted[d]![s] === sorted[d]![s - 1]
    if (!same || partOf(s) === partOf(s - 1)) continue
    fail({
      code: 'format/overlap',
      message: `${parts[partOf(s - 1)]!.name} and ${parts[partOf(s)]!.name} both hold (${axes.join(', ')}) = (${sorted.map((c) => c[s]).join(', ')})`,
      expected: 'each coordinate in one part',
      hint,
    })
  }
}
