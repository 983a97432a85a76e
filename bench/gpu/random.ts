/** Random normal numbers, as many as a benchmark needs in a second: the polar method (Marsaglia and Bray, 1964). */

/** A generator of doubles in [0, 1): xorshift32, whose period is far longer than any array here. */
function uniform(seed: number): () => number {
  let x = Math.imul(seed, 2654435761) | 1
  return () => {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    return (x >>> 0) / 4294967296
  }
}

/** Fills with independent normal values of mean 0 and variance 1. */
export function fillNormal(out: Float32Array, seed: number): Float32Array {
  const random = uniform(seed + 1)
  const n = out.length
  for (let k = 0; k < n; k += 2) {
    let a = 0
    let b = 0
    let s = 0
    do {
      a = 2 * random() - 1
      b = 2 * random() - 1
      s = a * a + b * b
    } while (s >= 1 || s === 0)
    const scale = Math.sqrt((-2 * Math.log(s)) / s)
    out[k] = a * scale
    if (k + 1 < n) out[k + 1] = b * scale
  }
  return out
}

/** `count` different integers below `n` in ascending order. */
export function choose(count: number, n: number, seed: number): Int32Array {
  const random = uniform(seed + 1)
  if (2 * count < n) {
    const chosen = new Set<number>()
    while (chosen.size < count) chosen.add(Math.floor(random() * n))
    return Int32Array.from(chosen).sort()
  }
  const all = Int32Array.from({ length: n }, (_, k) => k)
  for (let k = 0; k < count; k++) {
    const other = k + Math.floor(random() * (n - k))
    const value = all[k]!
    all[k] = all[other]!
    all[other] = value
  }
  return all.slice(0, count).sort()
}

/** Signs for random projections, the same ones everywhere. */
export const sign = (k: number): number => (Math.imul(k + 1, 0x9e3779b1) & 0x10000 ? 1 : -1)
export const signs = (count: number): Int8Array => Int8Array.from({ length: count }, (_, k) => sign(k))

let pool: Float32Array = new Float32Array(0)

/** `count` values of one long list of normal ones, from `from` on: each is made once, however many cases read it. */
export function normals(count: number, from = 0): Float32Array {
  const known = pool.length
  if (known < from + count) {
    const longer = new Float32Array(from + count)
    longer.set(pool)
    fillNormal(longer.subarray(known), (Date.now() + known) & 0xffff)
    pool = longer
  }
  return pool.subarray(from, from + count)
}
