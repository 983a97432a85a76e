/** Number of elements of a buffer. */
import type { Buffer } from '../../ir/loops.ts'
import { wordsFor } from '../../ir/packed-fields.ts'
import { expected, type Known } from './estimates.ts'

/** Elements of a buffer, words of a packed one; 0 where that is not known. */
export function elementsOf(b: Buffer, s: Pick<Known, 'params'>): number {
  const known: Known = { params: s.params, ranges: new Map(), lengths: new Map(), filled: new Map() }
  const n = b.shape.reduce((product, e) => product * expected(e, known), 1)
  return Number.isNaN(n) ? 0 : b.packed === undefined ? n : wordsFor(n, b.packed)
}
