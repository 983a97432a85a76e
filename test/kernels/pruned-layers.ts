/** Layers that are pruned in tiles: how they are drawn, their masks, what they compute by a plain loop and on a device. */

import fc from 'fast-check'
import { expect } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, type Device, dense, type SptProgram } from '../../src/node.ts'
import { type CoordTensor, decoder } from '../../src/storage/tensor.ts'

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

/** Random inputs of all properties: sizes, a mask by hand (all pruned; one tile full, one empty; any), columns and outputs of a thread. */
export const DRAWN = {
  g: fc.constantFrom(2, 4, 8),
  n: fc.nat(21),
  k: fc.nat(19),
  m: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 13 })),
  kind: fc.constantFrom<keyof typeof KINDS>('integers', 'integers', 'ties', 'zeros'),
  outputs: fc.array(fc.constantFrom(true, true, false), { minLength: 21, maxLength: 21 }),
  inputs: fc.array(fc.oneof(fc.constantFrom(0xffff, 0), fc.nat(0xfffe)), { minLength: 11, maxLength: 11 }),
  seed: fc.nat(1000),
  cols: fc.constantFrom(4, 8),
  high: fc.constantFrom(1, 2),
  wide: fc.constantFrom(1, 2, 4),
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

/** The weights of the layer that are kept, and zeros. */
export const keptWeights = ({ weights, mask }: Layer): number[] =>
  Array.from(weights, (w, e) => w * mask[e]! + 0)

/** What a tensor holds of the layer's weights, and zeros. */
export function weightsIn({ coords: [rows, columns], values }: CoordTensor, { n, k }: Layer): number[] {
  const found = new Float32Array(n * k)
  values!.forEach((x, e) => {
    found[rows![e]! * k + columns![e]!]! += Number(x)
  })
  return [...found]
}

export const inputsOf = (layer: Layer, X: Float32Array, m: number, low: number) => ({
  tensors: { W: kept(layer), X: dense([layer.k, m], X), b: dense([layer.n], Float32Array.from(layer.bias)) },
  params: { m, low },
})

/** X with NaN in the rows that no weight is for: they may be anything. */
export const unread = ({ k, mask }: Layer, X: Float32Array, m: number): Float32Array =>
  Float32Array.from(X, (x, at) =>
    mask.some((e, w) => e === 1 && w % k === Math.floor(at / m)) ? x : Number.NaN,
  )

/** All of Y for each of several inputs, compared with the reference as well where they are finite. */
export async function outputsOn(
  device: Device,
  program: SptProgram,
  [kernel, schedule, ...args]: readonly [kernel: string, schedule: string, ...args: number[]],
  all: readonly { readonly inputs: RunInputs; readonly finite: boolean }[],
): Promise<number[][]> {
  const compiled = await program
    .kernel(kernel)
    .schedule(schedule, ...args)
    .build(device)
  try {
    const found: number[][] = []
    for (const { inputs, finite } of all) {
      const prepared = await compiled.bind(...flatInputs(inputs))
      try {
        if (finite) expect((await prepared.verify()).maxAbsoluteError).toBe(0)
        else await prepared.run()
        const { dtype, values } = await prepared.get('Y')
        const read = decoder(dtype)
        found.push(Array.from(values!, (x) => (read ? read(x) : Number(x)) + 0))
      } finally {
        prepared.free()
      }
    }
    return found
  } finally {
    compiled.release()
  }
}
