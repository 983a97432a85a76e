/** Block-sparse matrices in f16, as blocks and as rows. */
import { f16ToF32Bits, toBf16, toF16 } from '../../src/ir/values/half.ts'
import type { Csr } from './matrix.ts'
import { choose, fillNormal } from './random.ts'

export interface Blocks {
  readonly size: number
  readonly b: number
  /** By row of blocks. */
  readonly indptr: Int32Array
  readonly indices: Int32Array
  /** Block after block, row-major, as f16 bits. */
  readonly values: Uint16Array
}

/** A square matrix of which as many blocks as `density` says are there, at random. */
export function randomBlocks(size: number, b: number, density: number, seed: number): Blocks {
  const across = size / b
  const chosen = choose(Math.round(density * across * across), across * across, seed)
  const indptr = new Int32Array(across + 1)
  for (const c of chosen) indptr[Math.floor(c / across) + 1]!++
  for (let r = 0; r < across; r++) indptr[r + 1]! += indptr[r]!
  const indices = chosen.map((c) => c % across)
  return { size, b, indptr, indices, values: halves(chosen.length * b * b, seed) }
}

/** Random blocks of one size and density, under the name that tables have. */
export interface BlockMatrix {
  readonly name: string
  readonly m: Blocks
}

/** Every size with every density. */
export const blockMatrices = (
  size: number,
  blocks: readonly number[],
  densities: readonly number[],
): BlockMatrix[] =>
  blocks.flatMap((b) =>
    densities.map((density) => ({
      name: `b = ${b}, ${(100 * density).toFixed(0)} %`,
      m: randomBlocks(size, b, density, b + Math.round(1000 * density)),
    })),
  )

/** Types whose values travel as bits. */
export type Half = 'f16' | 'bf16'

/** Random normal values as bits. */
export const halves = (count: number, seed: number, type: Half = 'f16'): Uint16Array =>
  Uint16Array.from(fillNormal(new Float32Array(count), seed), type === 'f16' ? toF16 : toBf16)

export function widen(bits: Uint16Array, type: Half = 'f16'): Float32Array {
  const out = new Uint32Array(bits.length)
  if (type === 'bf16') for (let k = 0; k < bits.length; k++) out[k] = bits[k]! << 16
  else {
    const table = f16ToF32Bits()
    for (let k = 0; k < bits.length; k++) out[k] = table[bits[k]!]!
  }
  return new Float32Array(out.buffer)
}

export interface Rows {
  /** With values in f32, which are exact. */
  readonly csr: Csr
  /** The same values as bits. */
  readonly bits: Uint16Array
}

/** The same matrix by rows, columns ascending. */
export function rowsOf(m: Blocks): Rows {
  const { size, b } = m
  const indptr = new Int32Array(size + 1)
  const count = m.values.length
  const indices = new Int32Array(count)
  const bits = new Uint16Array(count)
  let at = 0
  for (let i = 0; i < size; i++) {
    const block = Math.floor(i / b)
    for (let e = m.indptr[block]!; e < m.indptr[block + 1]!; e++) {
      const from = e * b * b + (i % b) * b
      for (let k = 0; k < b; k++, at++) {
        indices[at] = m.indices[e]! * b + k
        bits[at] = m.values[from + k]!
      }
    }
    indptr[i + 1] = at
  }
  return { csr: { name: `b = ${b}`, rows: size, columns: size, indptr, indices, values: widen(bits) }, bits }
}

/** As many blocks in each row of blocks: columns (−1 for padding), and values as rows × width. */
export function blockedEll(m: Blocks): {
  readonly indices: Int32Array
  readonly values: Uint16Array
  readonly width: number
} {
  const { size, b } = m
  const across = size / b
  let most = 0
  for (let r = 0; r < across; r++) most = Math.max(most, m.indptr[r + 1]! - m.indptr[r]!)
  const width = most * b
  const indices = new Int32Array(across * most).fill(-1)
  const values = new Uint16Array(size * width)
  for (let r = 0; r < across; r++)
    for (let e = m.indptr[r]!, k = 0; e < m.indptr[r + 1]!; e++, k++) {
      indices[r * most + k] = m.indices[e]!
      for (let i = 0; i < b; i++)
        values.set(m.values.subarray(e * b * b + i * b, e * b * b + (i + 1) * b), (r * b + i) * width + k * b)
    }
  return { indices, values, width }
}
