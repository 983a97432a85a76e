/** Layers that are pruned in tiles: their masks, and what they compute by a plain loop. */
import { coords } from '../../src/node.ts'

/** Weights n × k, what of them is kept, biases; X comes by k and m. */
export interface Layer {
  readonly n: number
  readonly k: number
  readonly weights: Int32Array
  readonly mask: Uint8Array
  readonly bias: Int32Array
}
export const numbers = (n: number, seed: number): Int32Array =>
  Int32Array.from({ length: n }, (_, k) => ((Math.imul(seed + 1, 2654435761 + 40503 * k) >>> 9) % 7) - 3)

export const KINDS = {
  integers: (n: number, seed: number) => numbers(n, seed),
  ties: (n: number) => new Int32Array(n).fill(2),
  zeros: (n: number) => new Int32Array(n),
}

/** Outputs that keep something, g together; each tile keeps some inputs, or all of them. Those that keep none are pruned. */
export function byHand(
  n: number,
  k: number,
  g: number,
  outputs: readonly boolean[],
  inputs: readonly number[],
): Uint8Array {
  const mask = new Uint8Array(n * k)
  let place = 0
  for (let j = 0; j < n; j++) {
    if (!outputs[j]) continue
    const keeps = inputs[Math.floor(place++ / g)]!
    for (let p = 0; p < k; p++) mask[j * k + p] = keeps === 0xffff ? 1 : (keeps >> (p % 16)) & 1
  }
  return mask
}

/** max(low, (W ⊙ mask) X + b), of what is kept alone. */
export function expected(
  { n, k, weights, mask, bias }: Layer,
  X: Float32Array,
  m: number,
  low: number,
): number[] {
  return Array.from({ length: n * m }, (_, at) => {
    const [j, i] = [Math.floor(at / m), at % m]
    let sum = bias[j]!
    for (let p = 0; p < k; p++) if (mask[j * k + p] === 1) sum += weights[j * k + p]! * X[p * m + i]!
    return Math.max(sum, low) + 0
  })
}

/** What is kept, as coordinates: zeros that are kept are there. */
export function kept({ n, k, weights, mask }: Layer) {
  const at = [...mask.keys()].filter((e) => mask[e] === 1)
  return coords(
    [n, k],
    [Int32Array.from(at, (e) => Math.floor(e / k)), Int32Array.from(at, (e) => e % k)],
    Float32Array.from(at, (e) => weights[e]!),
  )
}
