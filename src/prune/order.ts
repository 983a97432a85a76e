/** Stable radix sort of scores, sixteen bits at a time. */

const DIGITS = 4
const VALUES = 65536

/** Indices of non-negative scores, ascending. */
export function vectorOrder(scores: Float64Array): Uint32Array {
  const n = scores.length
  const halves = new Uint16Array(scores.buffer, scores.byteOffset, DIGITS * n)
  let order = new Uint32Array(n)
  for (let i = 0; i < n; i++) order[i] = i
  let next = new Uint32Array(n)
  const starts = new Uint32Array(VALUES)
  for (let digit = 0; digit < DIGITS; digit++) {
    starts.fill(0)
    for (let i = 0; i < n; i++) starts[halves[DIGITS * i + digit]!]!++
    // Skips a digit that is equal for all scores, which is common for integers.
    if (n === 0 || starts[halves[digit]!] === n) continue
    let sum = 0
    for (let v = 0; v < VALUES; v++) {
      const count = starts[v]!
      starts[v] = sum
      sum += count
    }
    for (let i = 0; i < n; i++) {
      const index = order[i]!
      next[starts[halves[DIGITS * index + digit]!]!++] = index
    }
    ;[order, next] = [next, order]
  }
  return order
}
