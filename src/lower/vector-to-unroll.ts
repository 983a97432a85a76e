import type { For } from '../ir/loops.ts'

/**
 * Demotes vectorized loops to unrolled ones: iterations in which threads meet, one after the other, are no lanes of a
 * vector.
 */
export const vectorToUnroll = (l: For): For =>
  l.mode.kind === 'vectorize' ? { ...l, mode: { kind: 'unroll', factor: null } } : l
