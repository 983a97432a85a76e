/** Interpretation of searches in index arrays, shared by all stages. */
import { InternalError } from '../ast/diagnostic.ts'
import type { Search } from '../ir/expr.ts'
import { unpackFields } from '../ir/packed-fields.ts'
import { printExpr } from '../ir/print-stage2.ts'

const HITS: Readonly<Record<Search['method'], (x: number, wanted: number) => boolean>> = {
  lower: (x, wanted) => x >= wanted,
  upper: (x, wanted) => x > wanted,
  next: (x, wanted) => x > wanted,
  linear: (x, wanted) => x === wanted,
}

/** The first position in lo .. hi that satisfies the search, otherwise hi; `at` reads one of `length` words. */
export function firstHit(
  e: Search,
  [lo, hi, wanted]: readonly [number, number, number],
  length: number,
  at: (position: number) => number,
): number {
  const hits = HITS[e.method]
  const per = 32 / (e.bits ?? 32)
  for (let p = lo; p < hi; p++) {
    const word = Math.floor(p / per)
    if (!(word >= 0 && word < length)) throw new InternalError(`${printExpr(e)} leaves its buffer at ${p}`)
    const x = e.bits === undefined ? at(p) : unpackFields([at(word)], e.bits, (p % per) + 1)[p % per]!
    if (hits(x, wanted)) return p
  }
  return hi
}
