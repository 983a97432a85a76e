import type { For } from '../ir/loops.ts'

/** Iterations in which threads meet, one after the other, are no lanes of a vector. */
export const apart = (l: For): For =>
  l.mode.kind === 'vectorize' ? { ...l, mode: { kind: 'unroll', factor: null } } : l
