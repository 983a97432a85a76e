/** Numbers that a seed gives: the same in every run and on every machine. */

/** A function that gives numbers in [0, 1). */
export function uniform(seed) {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let x = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97)
    return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32
  }
}

/** Of mean 0 and variance 1. */
export const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
