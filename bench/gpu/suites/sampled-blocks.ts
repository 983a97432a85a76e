/**
 * Sampled dense × dense into dense blocks, in f16 with f32 sums, 4096² with random blocks, against PyTorch (the dense
 * product with the blocks taken out, its sampled product of BSR) and a Triton kernel, each tuned.
 */
import { coords, dense } from '../../../src/node.ts'
import type { PythonResult } from '../../peers/python.ts'
import { type BlockMatrix, type Blocks, blockMatrices, halves, widen } from '../blocks.ts'
import { type Candidate, fieldOf } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { ours } from '../contestants.ts'
import { inputs } from '../declared.ts'
import { allowed, PRECISION, Tally, type Verdict, WORK } from '../expected.ts'
import type { OurDevice } from '../ours.ts'
import { choose, sign } from '../random.ts'
import type { Session } from '../session.ts'
import { blockCase, blockPeers, DENSITIES, SIZE, WIDTHS } from './block-cases.ts'

const BLOCKS = [8, 16, 32, 64, 128]

/** Rows of SIZE × depth, the larger depths first: a smaller one takes the beginning. */
export interface Factors {
  readonly X: Uint16Array
  readonly Y: Uint16Array
  readonly depth: number
}

export async function sampledBlocks(s: Session): Promise<void> {
  const { quick } = s.options
  const cells = blockMatrices(SIZE, quick ? [16, 64] : BLOCKS, quick ? [0.1] : DENSITIES)
  const most = SIZE * Math.max(...WIDTHS)
  const [X, Y] = [halves(most, 5), halves(most, 6)]
  const python = await blockPeers(s, 'sampled_blocks.py', cells, { X, Y })
  for (const cell of cells)
    for (const depth of WIDTHS) {
      if (s.late()) return
      if (s.has('sampled-blocks', cell.name, `K = ${depth}`)) continue
      const count = SIZE * depth
      await one(s, cell, { X: X.subarray(0, count), Y: Y.subarray(0, count), depth }, python)
    }
}

async function one(
  s: Session,
  cell: BlockMatrix,
  factors: Factors,
  python: readonly PythonResult[],
): Promise<void> {
  const { m } = cell
  const { depth } = factors
  const field = fieldOf(`sampled-blocks-${m.b}`, s.options.schedules)
  const device = await s.cuda()
  const expected = new ExpectedBlocks(m, factors)
  const entries = await compete(
    field.candidates.map((c) => sampled(device, c, m, factors, expected)),
    field.standard,
    s,
  )
  await s.done(
    blockCase(s, cell, depth, python, {
      suite: 'sampled-blocks',
      at: `K = ${depth}`,
      entries,
      checked: expected.checked,
      standard: field.standard,
    }),
  )
}

/** Kernels over blocks: the pattern of blocks on an axis, the factors as blocks of rows. */
function sampled(
  on: OurDevice,
  candidate: Candidate,
  m: Blocks,
  { X, Y, depth }: Factors,
  expected: ExpectedBlocks,
): Contestant {
  const across = SIZE / m.b
  const bind = async () => {
    const ready = await on.ready(candidate)
    const { source } = ready
    const [x, y] = inputs(source)
    const axis = source.axes.find((a) => a.kind === 'sparse_variable')
    if (!x || !y || !axis) throw new Error(`${source.name} takes no pattern and two factors`)
    const shape = [across, m.b, depth]
    return on.prepare(ready, { parts: null, milliseconds: 0, bytes: 0 }, dense(shape, X, 'f16'), {
      [axis.name]: coords([across, across], [rowsOf(m.indptr), m.indices], null),
      [y.name]: dense(shape, Y, 'f16'),
    })
  }
  return ours(candidate.text, bind, async (run) => {
    const got = await run.values(run.output.name)
    if (!(got instanceof Uint16Array)) throw new Error(`${run.output.name} is not f16`)
    return expected.check(widen(got))
  })
}

/** The row of each element. */
function rowsOf(indptr: Int32Array): Int32Array {
  const out = new Int32Array(indptr.at(-1)!)
  for (let r = 0; r + 1 < indptr.length; r++) out.fill(r, indptr[r], indptr[r + 1])
  return out
}

/**
 * Some elements in float64, and every block C by a random projection: s C t = (s X) (t Y) for its rows X and Y and vectors
 * of signs (after Freivalds, 1977).
 */
export class ExpectedBlocks {
  readonly #m: Blocks
  readonly #rows: Int32Array
  readonly #depth: number
  readonly #elements: Int32Array
  readonly #want: Float64Array
  readonly #scale: Float64Array
  readonly #left: Projected
  readonly #right: Projected

  constructor(m: Blocks, { X, Y, depth }: Factors) {
    const { b, indptr, indices, values } = m
    this.#m = m
    this.#depth = depth
    this.#rows = rowsOf(indptr)
    this.#elements = choose(Math.min(values.length, Math.floor(WORK / depth)), values.length, 29)
    this.#want = new Float64Array(this.#elements.length)
    this.#scale = new Float64Array(this.#elements.length)
    const [x, y] = [widen(X), widen(Y)]
    this.#elements.forEach((at, s) => {
      const block = Math.floor(at / (b * b))
      const left = (this.#rows[block]! * b + Math.floor((at % (b * b)) / b)) * depth
      const right = (indices[block]! * b + (at % b)) * depth
      for (let k = 0; k < depth; k++) {
        const product = x[left + k]! * y[right + k]!
        this.#want[s]! += product
        this.#scale[s]! += Math.abs(product)
      }
    })
    this.#left = projected(x, b, depth)
    this.#right = projected(y, b, depth)
  }

  get checked(): string {
    return `${this.#elements.length} elements, all ${this.#m.indices.length} blocks by projection`
  }

  check(C: Float32Array): Verdict {
    const { b, indices, values } = this.#m
    const { product, output } = PRECISION.f16
    const bound = allowed(this.#depth, { product, output })
    const tally = new Tally()
    if (C.length !== values.length) tally.problem = `${C.length} elements, not ${values.length}`
    this.#elements.forEach((at, s) => {
      const [want, scale] = [this.#want[s]!, this.#scale[s]!]
      tally.add(() => `element ${at}`, C[at]!, want, scale, bound * scale + output * Math.abs(want))
    })
    for (let e = 0; e < indices.length; e++) {
      const [row, column] = [this.#rows[e]!, indices[e]!]
      let [sum, square, want] = [0, 0, 0]
      for (let r = 0, at = e * b * b; r < b; r++)
        for (let c = 0; c < b; c++, at++) {
          sum += sign(r) * sign(c) * C[at]!
          square += C[at]! * C[at]!
        }
      for (let k = 0, p = row * this.#depth, q = column * this.#depth; k < this.#depth; k++, p++, q++)
        want += this.#left.sums[p]! * this.#right.sums[q]!
      const scale = this.#left.norms[row]! * this.#right.norms[column]!
      const limit = 6 * (bound * scale + output * Math.sqrt(square))
      tally.add(() => `block ${e} between signs`, sum, want, scale, limit)
    }
    return tally.verdict
  }
}

/** Of each b rows the sum with signs, and the norm of all their elements. */
interface Projected {
  readonly sums: Float64Array
  readonly norms: Float64Array
}

function projected(rows: Float32Array, b: number, depth: number): Projected {
  const blocks = rows.length / depth / b
  const sums = new Float64Array(blocks * depth)
  const norms = new Float64Array(blocks)
  for (let i = 0, at = 0; i < blocks * b; i++) {
    const block = Math.floor(i / b)
    for (let k = 0; k < depth; k++, at++) {
      sums[block * depth + k]! += sign(i % b) * rows[at]!
      norms[block]! += rows[at]! * rows[at]!
    }
  }
  return { sums, norms: norms.map(Math.sqrt) }
}
