/**
 * Products C = A B whose first operand has zeros that are known only in a run, f16 with f32 sums, 4096³: A is dense, and what
 * finds its tiles is measured with the product, against the dense product of cuBLAS. Tiles of A are 32 × 1 (a column of a panel of
 * rows), 1 × 64 (a piece of a row), or 32 × 64; random ones hold anything.
 */
import { dense } from '../../../src/node.ts'
import { halves, widen } from '../blocks.ts'
import { type Candidate, fieldOf } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { checkProduct, ours, withTypes } from '../contestants.ts'
import { inputs, outputOf } from '../declared.ts'
import { ExpectedProduct } from '../expected.ts'
import type { Csr } from '../matrix.ts'
import type { OurDevice, OurRun } from '../ours.ts'
import { choose } from '../random.ts'
import type { Session } from '../session.ts'
import { library, type Operands } from './gemm.ts'

const SIZE = 4096

/** Rows and columns of what is all zero or not. */
export type Tile = readonly [rows: number, columns: number]

export const TILES: readonly Tile[] = [
  [32, 1],
  [1, 64],
  [32, 64],
]
/** Shares of tiles that hold anything, in the order of how much there is to do. */
const HELD = [0.01, 0.05, 0.1, 0.5, 1]

/** A is m × k, by rows. */
export interface Masked extends Operands {
  readonly A: Uint16Array
  readonly B: Uint16Array
  /** How many elements tiles that hold anything have. */
  readonly count: number
}

export async function dynamic(s: Session): Promise<void> {
  const { quick } = s.options
  for (const tile of quick ? TILES.slice(0, 1) : TILES)
    for (const held of quick ? [0.05] : HELD) {
      if (s.late()) return
      await maskedProduct(s, tile, held, [SIZE, SIZE, SIZE])
    }
}

/** One pattern. */
export async function maskedProduct(
  s: Session,
  tile: Tile,
  held: number,
  shape: Masked['shape'],
): Promise<void> {
  const name = `tiles of ${tile.join(' × ')}`
  const at = `${100 * held} %`
  const suite = `dynamic-${tile.join('x')}`
  if (s.has(suite, name, at)) return
  const masked = make(shape, tile, held)
  const field = fieldOf(suite, s.options.schedules)
  const device = await s.cuda()
  const [m, n, k] = shape
  const flops = 2 * masked.count * n
  const entries = await compete(
    [library(s, 'f16', masked), ...field.candidates.map((c) => ourProduct(device, c, masked))],
    field.standard,
    s,
  )
  await s.done({
    suite,
    data: name,
    at,
    entries,
    checked: masked.expected.checked,
    floor: s.ceilings ? floor(s.ceilings, { flops, bytes: 2 * (m * k + k * n + m * n) }, 'f16') : null,
    flops,
    standard: field.standard,
  })
}

/** Made once, whatever tiles of them are there: that takes seconds. */
const made = new Map<string, Uint16Array>()

function valuesOf(count: number, seed: number): Uint16Array {
  const key = `${count} ${seed}`
  const values = made.get(key) ?? halves(count, seed)
  made.set(key, values)
  return values
}

export function make(shape: Masked['shape'], [high, wide]: Tile, held: number): Masked {
  const [m, n, k] = shape
  const across = Math.ceil(k / wide)
  const tiles = Math.ceil(m / high) * across
  const chosen = choose(Math.round(held * tiles), tiles, high + Math.round(1000 * held))
  const values = valuesOf(m * k, 3)
  const A = new Uint16Array(m * k)
  let count = 0
  for (const t of chosen) {
    const [top, left] = [Math.floor(t / across) * high, (t % across) * wide]
    for (let i = top; i < Math.min(m, top + high); i++) {
      const row = i * k
      const part = values.subarray(row + left, row + Math.min(k, left + wide))
      A.set(part, row + left)
      count += part.length
    }
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

const ourProduct = (on: OurDevice, candidate: Candidate, masked: Masked): Contestant =>
  ours(
    candidate.text,
    () => bindMasked(on, candidate, masked, masked.B),
    (run) => checkProduct(run, masked.expected),
    withTypes,
  )

/** Kernels take A by rows, or as columns: which of its dimensions is the result's first says it. */
export async function bindMasked(
  on: OurDevice,
  candidate: Candidate,
  { shape: [m, , k], A }: Masked,
  B: Uint16Array,
): Promise<OurRun> {
  const ready = await on.ready(candidate)
  const { source } = ready
  const [a, b] = inputs(source)
  if (!a || !b) throw new Error(`${source.name} has too few inputs`)
  const isByRows = a.axes[0] === outputOf(source).axes[0]
  const first = isByRows ? dense([m, k], A, 'f16') : dense([k, m], transposed(A, m, k), 'f16')
  const none = { parts: null, milliseconds: 0, bytes: 0 }
  return on.prepare(ready, none, first, { [b.name]: dense([k, B.length / k], B, 'f16') })
}

function transposed(a: Uint16Array, rows: number, columns: number): Uint16Array {
  const out = new Uint16Array(a.length)
  for (let r = 0, x = 0; r < rows; r++) for (let c = 0; c < columns; c++, x++) out[c * rows + r] = a[x]!
  return out
}
