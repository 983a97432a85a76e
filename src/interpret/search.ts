/** Interpretation of searches in index arrays, shared by all stages. */
import { InternalError } from '../ast/diagnostics/diagnostic.ts'
import type { Search } from '../ir/expressions/expr.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import { unpackFields } from '../ir/values/packed-fields.ts'

const PREDICATES: Readonly<Record<Search['method'], (x: number, target: number) => boolean>> = {
  lower: (x, target) => x >= target,
  upper: (x, target) => x > target,
  next: (x, target) => x > target,
  linear: (x, target) => x === target,
}

/** The first position in lo .. hi that satisfies the search, otherwise hi; `readWord` reads one of `length` words. */
export function findPosition(
  e: Search,
  [lo, hi, target]: readonly [number, number, number],
  length: number,
  readWord: (position: number) => number,
): number {
  const matches = PREDICATES[e.method]
  const fieldsPerWord = 32 / (e.bits ?? 32)
  for (let p = lo; p < hi; p++) {
    const word = Math.floor(p / fieldsPerWord)
    if (!(word >= 0 && word < length)) throw new InternalError(`${printExpr(e)} leaves its buffer at ${p}`)
    const x =
      e.bits === undefined
        ? readWord(p)
        : unpackFields([readWord(word)], e.bits, (p % fieldsPerWord) + 1)[p % fieldsPerWord]!
    if (matches(x, target)) return p
  }
  return hi
}
