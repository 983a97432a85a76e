/** Suites over matrices, with our kernels on the CPU and in the library's place loops that may be made to go wrong. */
import { expect, test } from 'vitest'
import type { Case } from '../../bench/gpu/case.ts'
import { type Csr, nonzeros } from '../../bench/gpu/matrix.ts'
import { OurDevice } from '../../bench/gpu/ours.ts'
import { choose, fillNormal } from '../../bench/gpu/random.ts'
import type { Session } from '../../bench/gpu/session.ts'
import { type Operation, overWidths } from '../../bench/gpu/suites/matrices.ts'
import { products } from '../../bench/gpu/suites/products.ts'
import { samples } from '../../bench/gpu/suites/samples.ts'
import { vectors } from '../../bench/gpu/suites/vectors.ts'
import type { CsrMemory, Dense, Prepared } from '../../bench/peers/cusparse.ts'
import type { Memory } from '../../bench/peers/stream.ts'
import { devices } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { HostStream } from './host-stream.ts'

const ROWS = 9
const COLUMNS = 7

function matrix(): Csr {
  const rows = Array.from({ length: ROWS }, (_, r) => [...choose(r % 5, COLUMNS, r)])
  const indptr = new Int32Array(ROWS + 1)
  for (const [r, row] of rows.entries()) indptr[r + 1] = indptr[r]! + row.length
  const indices = Int32Array.from(rows.flat())
  return {
    name: 'small',
    rows: ROWS,
    columns: COLUMNS,
    indptr,
    indices,
    values: fillNormal(new Float32Array(indices.length), 1),
  }
}

/** Loops for a library; `off` is added to what they write first. */
class HostLibrary {
  readonly stream: HostStream
  off = 0

  constructor(stream: HostStream) {
    this.stream = stream
  }

  upload(A: Csr): CsrMemory {
    const { stream } = this
    return {
      of: { rows: A.rows, columns: A.columns, nonzeros: nonzeros(A) },
      indptr: stream.upload(A.indptr),
      indices: stream.upload(A.indices),
      values: stream.upload(A.values),
    }
  }

  release(A: CsrMemory): void {
    this.stream.free(A.indptr, A.indices, A.values)
  }

  spmm(A: CsrMemory, B: Dense, C: Dense): Prepared {
    return this.#prepared(
      C.memory,
      (b, c, row, j, e) => {
        for (let f = 0; f < B.columns; f++)
          c[row * B.columns + f]! += this.stream.floats(A.values)[e]! * b[j * B.columns + f]!
      },
      A,
      B.memory,
    )
  }

  spmv(A: CsrMemory, x: Memory, y: Memory): Prepared {
    const one = { rows: A.of.columns, columns: 1 }
    return this.spmm(A, { ...one, memory: x }, { ...one, memory: y })
  }

  sddmm(X: Dense, Y: Dense, C: CsrMemory): Prepared {
    const x = this.stream.floats(X.memory)
    return this.#prepared(
      C.values,
      (y, c, row, j, e) => {
        for (let k = 0; k < X.columns; k++) c[e]! += x[row * X.columns + k]! * y[j * X.columns + k]!
      },
      C,
      Y.memory,
    )
  }

  #prepared(
    output: Memory,
    add: (operand: Float32Array, out: Float32Array, row: number, column: number, e: number) => void,
    A: CsrMemory,
    operand: Memory,
  ): Prepared {
    const { stream } = this
    const workspace = stream.alloc(4)
    return {
      facts: { 'preprocessing ms': 1, workspace: workspace.bytes },
      enqueue: () => {
        const [indptr, indices] = [stream.ints(A.indptr), stream.ints(A.indices)]
        const out = stream.floats(output)
        out.fill(0)
        for (let r = 0; r < A.of.rows; r++)
          for (let e = indptr[r]!; e < indptr[r + 1]!; e++)
            add(stream.floats(operand), out, r, indices[e]!, e)
        out[0]! += this.off
      },
      free: () => stream.free(workspace),
    }
  }
}

async function cases(
  operation: Operation,
  off = 0,
  before: readonly string[] = [],
): Promise<{ readonly cases: readonly Case[]; readonly left: number }> {
  const stream = new HostStream()
  const library = new HostLibrary(stream)
  library.off = off
  // Nothing here is so large that it takes 256 MiB to flush a cache.
  const cpu = await devices.cpu()
  const device = new OurDevice(Object.assign(cpu, { limits: { ...cpu.limits, maxBufferBytes: 2 ** 20 } }))
  const done: Case[] = []
  const session = {
    cuda: async () => device,
    stream: async () => stream,
    cusparse: async () => library,
    options: { schedules: [] },
    ceilings: undefined,
    culprits: new Map(),
    late: () => false,
    has: (_: string, __: string, at: string) => before.includes(at),
    done: async (c: Case) => void done.push(c),
  } as unknown as Session
  const given = await overWidths(session, `naive-${operation.name}`, operation, matrix(), [4, 8])
  expect(given).toEqual(done)
  return { cases: done, left: stream.live.size }
}

const operations = [
  ['products', products],
  ['samples', samples],
  ['vectors', vectors],
] as const

test.each(sample(operations, 2))(
  '%s: all results are correct, the fastest of both sides is measured, all memory is freed',
  async (_, o) => {
    const { cases: all, left } = await cases(o)
    expect(all.map((c) => c.at)).toEqual([`${o.letter} = 4`, `${o.letter} = 8`])
    for (const c of all) {
      expect(c.entries.map((e) => `${e.name} ${e.result} ${e.note}`.trim())).toSatisfy((x: string[]) =>
        x.every((e) => e.endsWith(' ok')),
      )
      for (const side of ['ours', 'peer'])
        expect(c.entries.some((e) => e.side === side && e.times !== null)).toBe(true)
      expect(c.entries.find((e) => e.side === 'peer')!.facts).toEqual({ 'preprocessing ms': 1, workspace: 4 })
    }
    expect(left).toBe(0)
  },
)

test.each(sample(operations, 1))('%s: an error of the library is detected', async (_, o) => {
  const { cases: all, left } = await cases(o, 1e-2)
  for (const c of all)
    for (const e of c.entries)
      expect([e.side, e.result]).toEqual(e.side === 'peer' ? ['peer', 'wrong'] : ['ours', 'ok'])
  expect(left).toBe(0)
})

test('work of an earlier process is not repeated', async () => {
  expect((await cases(products, 0, ['N = 4'])).cases.map((c) => c.at)).toEqual(['N = 8'])
})
