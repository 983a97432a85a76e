/** Softmax of scores, row by row: what kernels of attention are to compute, from nothing but which pairs count. */
export function attend(
  of: { readonly tokens: number; readonly heads: number; readonly d: number; readonly e: number },
  { Q, K, V }: Readonly<Record<'Q' | 'K' | 'V', Float32Array>>,
  scale: number,
  counts: (h: number, i: number, j: number) => boolean,
  bias: (h: number, i: number, j: number) => number = () => 0,
): Float32Array {
  const { tokens, heads, d, e } = of
  const O = new Float32Array(tokens * heads * e)
  const all = Array.from({ length: tokens }, (_, t) => t)
  for (let h = 0; h < heads; h++)
    for (const i of all) {
      const columns = all.filter((j) => counts(h, i, j))
      const at = (t: number, width: number, x: number): number => (t * heads + h) * width + x
      const scores = columns.map((j) => {
        let sum = 0
        for (let x = 0; x < d; x++) sum += Q[at(i, d, x)]! * K[at(j, d, x)]!
        return scale * sum + bias(h, i, j)
      })
      const most = Math.max(...scores)
      const weights = scores.map((s) => Math.exp(s - most))
      const total = weights.reduce((a, b) => a + b, 0)
      for (let x = 0; x < e; x++) {
        let sum = 0
        for (const [k, j] of columns.entries()) sum += (weights[k]! / total) * V[at(j, e, x)]!
        O[at(i, e, x)] = sum
      }
    }
  return O
}

/** The greatest difference; NaN where one has it and the other has not. */
export const apart = (a: Float32Array, b: Float32Array): number =>
  a.reduce((most, x, k) => Math.max(most, Number.isNaN(x) && Number.isNaN(b[k]) ? 0 : Math.abs(x - b[k]!)), 0)
