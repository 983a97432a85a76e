/** Parts that are brought ready-made hold each coordinate at most once. */
import { fail } from '../../ast/diagnostic.ts'
import { concat } from '../../columns/allocate.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'

export interface Claimed {
  /** Of the tensor's axes. */
  readonly axes: readonly string[]
  readonly shape: readonly number[]
  /** Of each part one array of coordinates for each axis. */
  readonly parts: readonly { readonly name: string; readonly columns: readonly Int32Array[] }[]
  readonly hint: string
}

/** @throws SptError `format/overlap`, with the first coordinate that two parts hold */
export function checkDisjoint({ axes, shape, parts, hint }: Claimed): void {
  if (parts.length < 2) return
  const columns = axes.map((_, d) => concat(parts.map((p) => p.columns[d]!)))
  const begins: number[] = []
  let n = 0
  for (const p of parts) {
    begins.push(n)
    n += p.columns[0]!.length
  }
  const { order, columns: sorted } = lexicographic(
    columns,
    shape.map((x) => Math.max(0, x - 1)),
  )
  const partOf = (s: number): number => {
    const e = order ? order[s]! : s
    // Of parts that begin alike only the last holds anything.
    return begins.findLastIndex((begin) => begin <= e)
  }
  for (let s = 1; s < n; s++) {
    let same = true
    for (let d = 0; same && d < sorted.length; d++) same = sorted[d]![s] === sorted[d]![s - 1]
    if (!same || partOf(s) === partOf(s - 1)) continue
    const [a, b] = [partOf(s - 1), partOf(s)]
    // Parts that are called alike are told by their places.
    const called = (k: number): string =>
      parts[a]!.name === parts[b]!.name ? `${parts[k]!.name} (part ${k + 1})` : parts[k]!.name
    fail({
      code: 'format/overlap',
      message: `${called(a)} and ${called(b)} both hold (${axes.join(', ')}) = (${sorted.map((c) => c[s]).join(', ')})`,
      expected: 'each coordinate in one part',
      hint,
    })
  }
}
