/**
 * Limits of code size for unrolling and expansion. How far a short text may grow. What is shared stays shared; these
 * bound what has to be written out. Kernels of the library stay below a tenth of each.
 */

/** Steps that a schedule makes, with those of the schedules that it uses and of each part. */
export const MAX_STEPS = 10_000

/** Statements that loops which are unrolled whole make of one nest. */
export const MAX_UNROLLED = 8192

/** Loops within each other: what walks a nest is recursive. */
export const MAX_NEST = 128

/** Levels of operations in the value of a `let`, with the values of those it mentions: what walks it is recursive. */
export const MAX_LEVELS = 1200

/** Levels that finding the element of an access takes, at most. */
export const ACCESS_LEVELS = 8

/** `12,345`, or `2^40` of what is too long to read. */
export const countText = (n: number): string =>
  n < 1e9 ? n.toLocaleString('en-US') : `about 2^${Math.floor(Math.log2(n))}`
