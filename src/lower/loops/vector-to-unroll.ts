import type { For } from '../../ir/statements/loops.ts'

/** Demotes a vectorized loop to an unrolled one, because iterations that contain barriers cannot be lanes of a vector. */
export const vectorToUnroll = (l: For): For =>
  l.mode.kind === 'vectorize' ? { ...l, mode: { kind: 'unroll', factor: null } } : l
