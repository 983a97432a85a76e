/** Small data for the kernels over trees of more than two levels, kernel maps, ragged batches and lists. */

import { coords } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { integers } from '../support/kernels.ts'

/** A sparse tensor's coordinates. */
export interface Points {
  readonly name: string
  readonly shape: readonly number[]
  readonly columns: readonly Int32Array[]
}

/** Elements where `keep` says so, in row-major order. */
export function points(
  name: string,
  shape: readonly number[],
  keep: (at: readonly number[]) => boolean,
): Points {
  const size = shape.reduce((a, b) => a * b, 1)
  const kept: number[][] = []
  for (let e = 0; e < size; e++) {
    let rest = e
    const at = shape.map(() => 0)
    for (let d = shape.length - 1; d >= 0; d--) {
      at[d] = rest % shape[d]!
      rest = Math.floor(rest / shape[d]!)
    }
    if (keep(at)) kept.push(at)
  }
  return { name, shape, columns: shape.map((_, d) => Int32Array.from(kept, (at) => at[d]!)) }
}

const tensor = (p: Points, values: Float32Array | Int32Array | null): CoordTensor =>
  coords(p.shape, p.columns, values)

export const withIntegers = (p: Points, seed: number): CoordTensor =>
  tensor(p, integers(p.columns[0]!.length, seed))

/** Three-dimensional structures that break things: empty ones, missing slices and fibres, one long fibre. */
export function tensors(seed = 1): Points[] {
  const random = new Random(seed)
  const chance = (p: number): boolean => random.next() < p
  return [
    points('without elements', [3, 4, 5], () => false),
    points('0 × 4 × 5', [0, 4, 5], () => false),
    points('3 × 0 × 5', [3, 0, 5], () => false),
    points('3 × 4 × 0', [3, 4, 0], () => false),
    points('one element', [1, 1, 1], () => true),
    points('missing slices', [7, 5, 9], ([i]) => i! % 3 === 1 && chance(0.4)),
    points('missing fibres', [4, 11, 13], ([, j]) => j! % 4 !== 2 && chance(0.2)),
    points('one long fibre', [3, 6, 80], ([i, j]) => (i === 1 && j === 4) || chance(0.03)),
    points('whole tiles', [2, 16, 32], () => chance(0.3)),
  ]
}

/** Ragged lists: for list k the positions 0 … lengths[k]-1. */
export function ragged(lengths: readonly number[]): readonly [Int32Array, Int32Array] {
  const k: number[] = []
  const p: number[] = []
  lengths.forEach((n, list) => {
    for (let q = 0; q < n; q++) {
      k.push(list)
      p.push(q)
    }
  })
  return [Int32Array.from(k), Int32Array.from(p)]
}

/** `length` numbers below `bound`. */
export function below(bound: number, length: number, seed: number): Int32Array {
  const random = new Random(seed)
  return Int32Array.from({ length }, () => random.below(bound))
}
