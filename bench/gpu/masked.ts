/** Matrices with zeros that are known only in a run, and our kernels on them. */
import { type Dtype, dense } from '../../src/node.ts'
import { halves, widen } from './blocks.ts'
import type { Candidate } from './candidates.ts'
import type { Contestant } from './case.ts'
import { checkProduct, ours, withTypes } from './contestants.ts'
import { operands, outputOf } from './declared.ts'
import { ExpectedProduct } from './expected.ts'
import type { Csr } from './matrix.ts'
import type { OurDevice, OurRun } from './ours.ts'
import { valuesAs } from './pruned-layers.ts'
import type { Options } from './session.ts'
import type { Operands } from './suites/gemm.ts'
import { chosenTiles, elementsOf, type Tile } from './tiles.ts'

/** A is m × k, by rows. */
export interface Masked extends Operands {
  readonly A: Uint16Array
  readonly B: Uint16Array
  /** How many elements tiles that hold anything have. */
  readonly count: number
}

/** Made once, whatever tiles of them are there: that takes seconds. */
const made = new Map<string, Uint16Array>()

function valuesOf(count: number, seed: number): Uint16Array {
  const key = `${count} ${seed}`
  const values = made.get(key) ?? halves(count, seed)
  made.set(key, values)
  return values
}

export function make(shape: Masked['shape'], tile: Tile, held: number): Masked {
  const [m, n, k] = shape
  const values = valuesOf(m * k, 3)
  const A = new Uint16Array(m * k)
  let count = 0
  for (const t of chosenTiles([m, k], tile, held, tile[0] + Math.round(1000 * held))) {
    for (let i = t.top; i < t.bottom; i++)
      A.set(values.subarray(i * k + t.left, i * k + t.right), i * k + t.left)
    count += elementsOf(t)
  }
  const B = valuesOf(k * n, 4)
  return { shape, A, B, dtype: 'f16', count, expected: new ExpectedProduct(byRows(m, k, A), widen(B), n) }
}

function byRows(rows: number, columns: number, bits: Uint16Array): Csr {
  const all = widen(bits)
  const indptr = new Int32Array(rows + 1)
  for (let r = 0, e = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) if (all[r * columns + c] !== 0) e++
    indptr[r + 1] = e
  }
  const indices = new Int32Array(indptr[rows]!)
  const values = new Float32Array(indptr[rows]!)
  for (let x = 0, e = 0; x < all.length; x++)
    if (all[x] !== 0) {
      indices[e] = x % columns
      values[e++] = all[x]!
    }
  return { name: 'masked', rows, columns, indptr, indices, values }
}

/**
 * Kernels take A by rows, or as columns: which of its dimensions is the result's first says it. Values have the types that they
 * declare, scalar factors are one, and what a choice takes is what its runs lead it to.
 */
export async function bindMasked(
  on: OurDevice,
  candidate: Candidate,
  { shape: [m, , k], A }: Masked,
  B: Uint16Array,
): Promise<OurRun> {
  const ready = await on.ready(candidate)
  const { source } = ready
  const [a, b] = operands(source)
  const isByRows = a.axes[0] === outputOf(source).axes[0]
  const values = (dtype: Dtype, shape: readonly number[], bits: Uint16Array) =>
    dense(shape, ...valuesAs(dtype, bits))
  const first = isByRows ? values(a.dtype, [m, k], A) : values(a.dtype, [k, m], transposed(A, m, k))
  const scalars = source.params.filter((p) => p.kind === 'scalar').map((p) => [p.name, 1] as const)
  const rest = { [b.name]: values(b.dtype, [k, B.length / k], B) }
  return on.led(ready, first, rest, Object.fromEntries(scalars))
}

function transposed(a: Uint16Array, rows: number, columns: number): Uint16Array {
  const out = new Uint16Array(a.length)
  for (let r = 0, x = 0; r < rows; r++) for (let c = 0; c < columns; c++, x++) out[c * rows + r] = a[x]!
  return out
}

/** A product of ours; a choice is what its runs lead it to. */
export const ourMasked = (on: OurDevice, candidate: Candidate, masked: Masked): Contestant =>
  ours(
    candidate.text,
    () => bindMasked(on, candidate, masked, masked.B),
    (run) => checkProduct(run, masked.expected),
    withTypes,
  )

/** Shares of tiles that hold anything, by the sparsities that were asked for. */
export const heldAsked = ({ layers }: Options, usual: readonly number[]): readonly number[] =>
  layers?.sparsities?.map((zeros) => Number((1 - zeros).toFixed(9))) ?? usual
