/** Number of elements of a buffer. */
import type { Buffer } from '../../ir/statements/loops.ts'
import { wordsFor } from '../../ir/values/packed-fields.ts'
import { expectedValue, type KnownValues } from './estimates.ts'

/** Number of elements of a buffer, or of words of a packed one; 0 if unknown. */
export function elementsOf(b: Buffer, s: Pick<KnownValues, 'params'>): number {
  const known: KnownValues = { params: s.params, ranges: new Map(), lengths: new Map(), filled: new Map() }
  const n = b.shape.reduce((product, e) => product * expectedValue(e, known), 1)
  return Number.isNaN(n) ? 0 : b.packed === undefined ? n : wordsFor(n, b.packed)
}
