/** What works row by row: softmax, attention, reductions of segments; and batches of blocks. */
import { expect, test } from 'vitest'
import { coords, devices, load, readTensor } from '../../src/node.ts'
import type { KernelCase, Pattern } from '../support/kernels.ts'
import { integers, kernelSuite, matrix, normals, patterns } from '../support/kernels.ts'

const cora = await readTensor('data/cora.mtx')

kernelSuite({
  file: 'kernels/softmax.spt',
  cases: () => [
    ...patterns().map((p) => ({
      name: p.name,
      inputs: { tensors: { A: matrix(p, normals(p.rows.length, 2)) } },
    })),
    { name: 'cora', large: true, inputs: { tensors: { A: cora } } },
    // Without the maximum taken off first, exp overflows.
    ...patterns()
      .slice(4, 8)
      .map((p) => ({
        name: `${p.name}, large`,
        inputs: {
          tensors: {
            A: matrix(
              p,
              normals(p.rows.length, 2).map((x) => 1000 * x),
            ),
          },
        },
      })),
  ],
})

/** Each row has the same values as many others: exp(0) = 1, and sums and quotients by powers of two are exact. */
test('softmax of a row of 4 equal elements is 1/4, and of a row of -inf is 0', async () => {
  const program = await load('kernels/softmax.spt')
  const A = coords(
    [4, 9],
    [
      [0, 0, 0, 0, 2, 2],
      [1, 3, 5, 8, 0, 1],
    ],
    Float32Array.of(7, 7, 7, 7, -Infinity, -Infinity),
  )
  for (const device of [await devices.cpu(), await devices.webgpu()]) {
    for (const s of program.kernel().schedules) {
      const compiled = await program.kernel().schedule(s).build(device)
      const { P } = await compiled({ A })
      expect([...P!.values!], `${s} on ${device.kind}`).toEqual([0.25, 0.25, 0.25, 0.25, 0, 0])
      compiled.release()
    }
    await device.dispose()
  }
})

const heads = (p: Pattern, d: number, e: number): KernelCase => ({
  name: `${p.name}, d = ${d}, e = ${e}`,
  inputs: {
    tensors: {
      j: matrix(p, null),
      Q: normals(p.m * d, 3),
      K: normals(p.n * d, 4),
      V: normals(p.n * e, 5),
    },
    params: { d, e, scale: 0.25 },
  },
})

kernelSuite({
  file: 'kernels/attention.spt',
  cases: () => [
    ...patterns().map((p, k) => heads(p, [5, 16, 1][k % 3]!, [70, 7, 0, 16][k % 4]!)),
    {
      name: 'cora',
      large: true,
      inputs: {
        tensors: {
          j: cora,
          Q: normals(2708 * 8, 3),
          K: normals(2708 * 8, 4),
          V: normals(2708 * 8, 5),
        },
        params: { scale: 0.35 },
      },
    },
  ],
})

/** `p` is the pattern of blocks. */
function blocks(kernel: string, p: Pattern, batch: number, b: number, d: number): KernelCase {
  const each = p.rows.length * b * b
  const column = (f: (e: number, r: number, c: number, t: number) => number): Int32Array => {
    const out = new Int32Array(batch * each)
    let at = 0
    for (let t = 0; t < batch; t++)
      for (let e = 0; e < p.rows.length; e++)
        for (let r = 0; r < b; r++) for (let c = 0; c < b; c++) out[at++] = f(e, r, c, t)
    return out
  }
  const A = coords(
    [batch, p.m, p.n, b, b],
    [
      column((_e, _r, _c, t) => t),
      column((e) => p.rows[e]!),
      column((e) => p.cols[e]!),
      column((_e, r) => r),
      column((_e, _r, c) => c),
    ],
    integers(batch * each, 2),
  )
  const dense =
    kernel === 'block_spmm'
      ? { A, B: integers(batch * p.n * b * d, 3) }
      : { jo: matrix(p, null), X: integers(batch * p.m * b * d, 3), Y: integers(batch * p.n * b * d, 4) }
  return {
    name: `${p.name}, batch ${batch}, b = ${b}, d = ${d}`,
    inputs: { tensors: dense, params: { batch, b, d } },
    exact: true,
  }
}

kernelSuite({
  file: 'kernels/block-sparse.spt',
  cases: (kernel) => {
    const small = patterns().filter((p) => p.m * p.n < 1000)
    return small.map((p, k) =>
      blocks(kernel, p, [2, 1, 3, 0][k % 4]!, [4, 16, 5, 1, 19][k % 5]!, [8, 17, 1][k % 3]!),
    )
  },
})

/** Segments as long as `lengths` say. */
function segments(name: string, lengths: readonly number[], n: number, d: number): KernelCase {
  const row: number[] = []
  const at: number[] = []
  const f: number[] = []
  for (const [i, length] of lengths.entries())
    for (let p = 0; p < length; p++)
      for (let k = 0; k < d; k++) {
        row.push(i)
        at.push(p)
        f.push(k)
      }
  const X = coords([lengths.length, n, d], [row, at, f], integers(row.length, 5))
  return { name: `${name}, d = ${d}`, inputs: { tensors: { X } }, exact: true }
}

kernelSuite({
  file: 'kernels/segment-reduce.spt',
  cases: () => [
    segments('mixed', [3, 0, 1, 130, 0, 7, 2, 64], 130, 5),
    segments('one', [77], 77, 33),
    segments('all empty', [0, 0, 0], 4, 3),
    segments('none', [], 4, 3),
    segments('no features', [2, 3], 4, 0),
    segments(
      'fixed_length',
      Array.from({ length: 70 }, () => 8),
      8,
      16,
    ),
  ],
})
