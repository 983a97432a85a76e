/** Dense products against cuBLAS: the gauge of the instructions. */
import { DTYPE_BYTES } from '../../../src/ir/values/dtype.ts'
import { dense, type ValueArray } from '../../../src/node.ts'
import type { Arithmetic } from '../../peers/cublas.ts'
import { type Half, halves, widen } from '../blocks.ts'
import { type Candidate, fieldOf } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { checkProduct, ours, peer, withTypes } from '../contestants.ts'
import { operands } from '../declared.ts'
import { ExpectedProduct, PRECISION } from '../expected.ts'
import type { Csr } from '../matrix.ts'
import { type Shape, shapesAsked } from '../named.ts'
import type { OurDevice } from '../ours.ts'
import { normals } from '../random.ts'
import type { Session } from '../session.ts'

/** Multiples of every tile, few columns, multiples of 8, primes, and few rows. */
const SHAPES: readonly Shape[] = [
  [4096, 4096, 4096],
  [4096, 512, 4096],
  [1000, 3000, 5000],
  [1009, 3001, 5003],
  [16, 4096, 4096],
]

const CASES = [
  ['gemm-f32', 'f32', 'f32'],
  ['gemm-tf32', 'tf32', 'f32'],
  ['gemm-f16', 'f16', 'f16'],
  ['gemm-bf16', 'bf16', 'bf16'],
] as const satisfies readonly (readonly [suite: string, Arithmetic, Type])[]

type Type = 'f32' | Half

export interface Operands {
  readonly A: ValueArray
  readonly B: ValueArray
  readonly dtype: Type
  readonly expected: ExpectedProduct
  readonly shape: Shape
}

export async function gemm(s: Session): Promise<void> {
  const shapes = shapesAsked(s.options.matrices, SHAPES)
  for (const shape of s.options.quick ? shapes.slice(0, 1) : shapes) await productsOf(s, shape)
}

/** One shape in all types. */
export async function productsOf(s: Session, shape: Shape): Promise<void> {
  const [m, n, k] = shape
  for (const [suite, arithmetic, dtype] of CASES) {
    if (s.late()) return
    if (s.has(suite, shape.join(' × '), arithmetic)) continue
    const operands = make(shape, dtype)
    const field = fieldOf(suite, s.options.schedules)
    const device = await s.cuda()
    const flops = 2 * m * n * k
    const bytes = DTYPE_BYTES[dtype] * (m * k + k * n + m * n)
    const entries = await compete(
      [
        library(s, arithmetic, operands),
        ...field.candidates.map((c) => ourGemm(device, c, operands, arithmetic)),
      ],
      field.standard,
      s,
    )
    // The units take both types of 16 bits at one rate.
    const rate = arithmetic === 'bf16' ? 'f16' : arithmetic
    await s.done({
      suite,
      data: shape.join(' × '),
      at: arithmetic,
      entries,
      checked: operands.expected.checked,
      floor: s.ceilings ? floor(s.ceilings, { flops, bytes }, rate) : null,
      flops,
      standard: field.standard,
    })
  }
}

function make(shape: Shape, dtype: Type): Operands {
  const [m, n, k] = shape
  if (dtype !== 'f32') {
    const [A, B] = [halves(m * k, 3, dtype), halves(k * n, 4, dtype)]
    const expected = new ExpectedProduct(full(m, k, widen(A, dtype)), widen(B, dtype), n)
    return { A, B, dtype, shape, expected }
  }
  const A = normals(m * k)
  const B = normals(k * n, m * k + 1)
  return { A, B, dtype, shape, expected: new ExpectedProduct(full(m, k, A), B, n) }
}

/** A dense matrix as one by rows. */
export function full(rows: number, columns: number, values: Float32Array): Csr {
  const indptr = Int32Array.from({ length: rows + 1 }, (_, r) => r * columns)
  const indices = Int32Array.from({ length: rows * columns }, (_, e) => e % columns)
  return { name: 'dense', rows, columns, indptr, indices, values }
}

/** The library's product. */
export function library(
  s: Session,
  arithmetic: Arithmetic,
  { A, B, dtype, expected, shape }: Operands,
): Contestant {
  return peer(s, `cuBLAS ${arithmetic}`, async (stream) => {
    const blas = await s.cublas()
    const [m, n] = shape
    const [a, b, c] = [stream.upload(A), stream.upload(B), stream.alloc(DTYPE_BYTES[dtype] * m * n)]
    return {
      enqueue: blas.gemm(arithmetic, shape, a, b, c),
      output: c,
      check() {
        const got =
          dtype === 'f32'
            ? stream.download(c, new Float32Array(m * n))
            : widen(stream.download(c, new Uint16Array(m * n)), dtype)
        return expected.check(got, PRECISION[arithmetic])
      },
      free: () => stream.free(a, b, c),
    }
  })
}

function ourGemm(on: OurDevice, candidate: Candidate, o: Operands, arithmetic: Arithmetic): Contestant {
  const bind = async () => {
    const ready = await on.ready(candidate)
    const { source } = ready
    const [a, b] = operands(source)
    for (const buffer of [a, b])
      if (buffer.dtype !== o.dtype) throw new Error(`${source.name} takes ${buffer.dtype}, not ${o.dtype}`)
    const [m, n, k] = o.shape
    // Scalar factors are one.
    const scalars = source.params.filter((p) => p.kind === 'scalar').map((p) => [p.name, 1] as const)
    return on.prepare(
      ready,
      { parts: null, milliseconds: 0, bytes: 0 },
      dense([m, k], o.A, o.dtype),
      { [b.name]: dense([k, n], o.B, o.dtype) },
      Object.fromEntries(scalars),
    )
  }
  const factors = arithmetic === 'tf32' ? 'tf32' : 'f32'
  return ours(candidate.text, bind, (run) => checkProduct(run, o.expected, factors), withTypes)
}
