/**
 * Block-sparse × dense in f16 with f32 sums, A 4096², against PyTorch's BSR product and a Triton kernel, both tuned (a
 * Python program, started once for all cases), and cuSPARSE's block formats.
 */
import { dense, type StoredTensor } from '../../../src/node.ts'
import type { PythonResult } from '../../peers/python.ts'
import { type BlockMatrix, type Blocks, blockedEll, blockMatrices, halves, rowsOf, widen } from '../blocks.ts'
import { type Candidate, fieldOf, widthValues } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { checkProduct, ours, peer, withTypes } from '../contestants.ts'
import { operands, structured } from '../declared.ts'
import { ExpectedProduct, PRECISION } from '../expected.ts'
import { Formats } from '../formats.ts'
import type { OurDevice } from '../ours.ts'
import { valuesAs } from '../pruned-layers.ts'
import type { Session } from '../session.ts'
import { blockCase, blockPeers, blockSizes, DENSITIES, SIZE, WIDTHS } from './block-cases.ts'

/** Blocks of 8, which the peers' tensor cores do not take, are there for who asks (`--matrices b=8`). */
const BLOCKS = [16, 32, 64, 128]

export async function blockSparse(s: Session): Promise<void> {
  const { quick } = s.options
  const sizes = blockSizes(s.options.matrices, quick ? [32, 64] : BLOCKS)
  const cells = blockMatrices(SIZE, sizes, quick ? [0.1] : DENSITIES)
  const operand = halves(SIZE * Math.max(...WIDTHS), Date.now() & 0xffff)
  s.python ??= await blockPeers(s, 'block_sparse.py', cells, { operand })
  for (const cell of cells)
    for (const width of WIDTHS) {
      if (s.late()) return
      if (s.has('block-sparse', cell.name, `N = ${width}`)) continue
      await one(s, cell, operand.subarray(0, SIZE * width), width, s.python)
    }
}

async function one(
  s: Session,
  cell: BlockMatrix,
  B: Uint16Array,
  width: number,
  python: readonly PythonResult[],
): Promise<void> {
  const { m } = cell
  const field = fieldOf(`block-sparse-${m.b}`, s.options.schedules, { b: m.b, ...widthValues(width) })
  const device = await s.cuda()
  const { csr, bits } = rowsOf(m)
  const expected = new ExpectedProduct(csr, widen(B), width)
  const formats = new Formats()
  try {
    const entries = await compete(
      [
        ...(await libraries(s, m, B, width, expected)),
        ...field.candidates.map((c) => ourBlocks(device, c, formats, m, { csr, bits }, B, width, expected)),
      ],
      field.standard,
      s,
    )
    await s.done(
      blockCase(s, cell, width, python, {
        suite: 'block-sparse',
        at: `N = ${width}`,
        entries,
        checked: expected.checked,
        standard: field.standard,
      }),
    )
  } finally {
    await formats.free()
  }
}

/** cuSPARSE's block formats. */
async function libraries(
  s: Session,
  m: Blocks,
  B: Uint16Array,
  width: number,
  expected: ExpectedProduct,
): Promise<Contestant[]> {
  const [stream, library] = [await s.stream(), await s.cusparse()]
  const contestant = (
    name: string,
    arrays: () => { readonly indptr: Int32Array; readonly indices: Int32Array; readonly values: Uint16Array },
    call: (
      on: Parameters<typeof library.spmmBlocks>[1],
      operands: readonly [Parameters<typeof library.spmm>[1], Parameters<typeof library.spmm>[2]],
    ) => ReturnType<typeof library.spmm>,
  ): Contestant =>
    peer(s, name, () => {
      const a = arrays()
      const on = {
        indptr: stream.upload(a.indptr),
        indices: stream.upload(a.indices),
        values: stream.upload(a.values),
      }
      const [b, c] = [stream.upload(B), stream.alloc(2 * SIZE * width)]
      const free = (): void => stream.free(on.indptr, on.indices, on.values, b, c)
      try {
        const prepared = call(on, [
          { memory: b, rows: SIZE, columns: width },
          { memory: c, rows: SIZE, columns: width },
        ])
        return {
          ...prepared,
          output: c,
          check: () =>
            expected.check(widen(stream.download(c, new Uint16Array(SIZE * width))), PRECISION.f16),
          free() {
            prepared.free()
            free()
          },
        }
      } catch (error) {
        free()
        throw error
      }
    })
  const { b } = m
  const across = SIZE / b
  return [
    contestant(
      'cuSPARSE BSR',
      () => m,
      (on, [x, y]) =>
        library.spmmBlocks(
          { blockRows: across, blockColumns: across, blocks: m.indices.length, b },
          on,
          x,
          y,
        ),
    ),
    contestant(
      'cuSPARSE Blocked-ELL',
      () => ({ indptr: m.indptr, ...blockedEll(m) }),
      (on, [x, y]) =>
        library.spmmBlockedEll(
          { rows: SIZE, columns: SIZE, b, width: blockedEll(m).width },
          on.indices,
          on.values,
          x,
          y,
        ),
    ),
  ]
}

/**
 * Kernels over coordinates (A of two axes, brought into a format) and over blocks (A of four, or five with a batch of
 * one); the other tensors have as many axes as they declare, with blocks of rows first.
 */
function ourBlocks(
  on: OurDevice,
  candidate: Candidate,
  formats: Formats,
  m: Blocks,
  rows: ReturnType<typeof rowsOf>,
  B: Uint16Array,
  width: number,
  expected: ExpectedProduct,
): Contestant {
  const bind = async () => {
    const asked = await on.ready(candidate)
    const { source } = asked
    const [a, b] = operands(source)
    const { tensor, shape } = asDeclared(a.axes.length, m, rows)
    const first: StoredTensor = structured(source, shape, tensor, ...valuesAs(a.dtype, tensor.bits))
    const [values, dtype] = valuesAs(b.dtype, B)
    const rest = { [b.name]: dense(operandShape(b.axes.length, m, width), values, dtype) }
    const ready = await on.decided(asked, { [a.name]: first, ...rest })
    const built = await formats.of(ready.compiled, () => on.build(ready, first))
    return on.prepare(ready, built, first, rest)
  }
  return ours(candidate.text, bind, (run) => checkProduct(run, expected), withTypes)
}

function asDeclared(axes: number, m: Blocks, { csr, bits }: ReturnType<typeof rowsOf>) {
  if (axes === 2) return { tensor: { indptr: csr.indptr, indices: csr.indices, bits }, shape: [SIZE, SIZE] }
  const across = SIZE / m.b
  const shape = [across, across, m.b, m.b]
  const tensor = { indptr: m.indptr, indices: m.indices, bits: m.values }
  if (axes === 4) return { tensor, shape }
  if (axes === 5) return { tensor, shape: [1, ...shape] }
  throw new Error(`a sparse input of ${axes} axes`)
}

const operandShape = (axes: number, m: Blocks, width: number): number[] => {
  const blocks = [SIZE / m.b, m.b, width]
  return axes === 2 ? [SIZE, width] : axes === 3 ? blocks : [1, ...blocks]
}
