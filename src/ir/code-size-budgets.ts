/**
 * Limits of code size for unrolling and expansion, which bound how far a short source may grow. Shared expressions stay
 * shared; the limits apply to code that is written out. Kernels of the library stay below a tenth of each.
 */

/** Steps of a schedule, including those of the schedules that it uses and of each part. */
export const MAX_STEPS = 10_000

/** Statements per nest after complete unrolling of its loops. */
export const MAX_UNROLLED = 8192

/** Depth of nested loops: passes over a nest are recursive. */
export const MAX_NEST = 128

/**
 * Depth of operations in the value of a `let`, including the values of the lets it mentions: passes over it are
 * recursive.
 */
export const MAX_LEVELS = 1200

/** Depth of operations added by computing the address of an access. */
export const ACCESS_LEVELS = 8

/** `12,345`; numbers from 1e9 on as `about 2^40`. */
export const countText = (n: number): string =>
  n < 1e9 ? n.toLocaleString('en-US') : `about 2^${Math.floor(Math.log2(n))}`
