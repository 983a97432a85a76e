/** What is brought ready-made holds each coordinate at most once: a tensor in its parts, and each part by itself. */
import { fail } from '../../ast/diagnostic.ts'
import { concat } from '../../columns/allocate.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'
import { isInjective } from '../../formats/proof/proved.ts'
import { axisInText, repeats, type StoredAxis } from '../../ir/axis.ts'
import type { FormatInstance } from '../../ir/format.ts'

export interface Claimed {
  /** Of the tensor's axes. */
  readonly axes: readonly Pick<StoredAxis, 'name' | 'copyOf'>[]
  readonly shape: readonly number[]
  /** Of each part one array of coordinates for each axis. */
  readonly parts: readonly {
    readonly name: string
    readonly columns: readonly Int32Array[]
    /** Whether its levels were validated to hold each coordinate once (`levelsTell`). */
    readonly once: boolean
  }[]
  /** Whether elements at one coordinate are elements of their own (`keepsApart`). */
  readonly apart: boolean
  /** Where two parts hold a coordinate. */
  readonly hint?: string
  /** Where one holds it twice. */
  readonly once?: string
}

/**
 * Whether levels that are validated, segment by segment, have no coordinate of the tensor twice: none repeats its own, and
 * different coordinates on them are different ones of the tensor, through each of the formats.
 */
export const levelsTell = (
  levels: readonly StoredAxis[],
  formats: readonly { readonly instance: FormatInstance; readonly dims: readonly string[] }[],
): boolean => !levels.some(repeats) && formats.every((f) => isInjective(f.instance, f.dims))

/** Whether nothing has to be looked at: what is one part, and holds nothing twice or may. */
export const isTold = (parts: readonly { readonly once: boolean }[], apart: boolean): boolean =>
  parts.length < 2 && parts.every((p) => p.once || apart)

const ONCE = 'add the duplicates up, or declare an axis of the tensor nonunique'

/**
 * Linear where coordinates come in order, otherwise by a sort.
 * @throws SptError `format/overlap`, with the first coordinate that two parts hold; `bind/duplicate`, that one holds twice
 * where elements at one coordinate do not stay apart
 */
export function checkOnce({ axes, shape, parts, apart, hint, once = ONCE }: Claimed): void {
  if (isTold(parts, apart)) return
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
    if (!same) continue
    const [a, b] = [partOf(s - 1), partOf(s)]
    if (a === b && apart) continue
    const coordinate = `(${axes.map(axisInText).join(', ')}) = (${sorted.map((c) => c[s]).join(', ')})`
    if (a === b)
      fail({
        code: 'bind/duplicate',
        message: `${parts[a]!.name} holds ${coordinate} twice`,
        expected: 'each coordinate once',
        hint: once,
      })
    // Parts that are called alike are told by their places.
    const called = (k: number): string =>
      parts[a]!.name === parts[b]!.name ? `${parts[k]!.name} (part ${k + 1})` : parts[k]!.name
    fail({
      code: 'format/overlap',
      message: `${called(a)} and ${called(b)} both hold ${coordinate}`,
      expected: 'each coordinate in one part',
      ...(hint !== undefined && { hint }),
    })
  }
}
