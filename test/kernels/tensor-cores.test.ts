/** Products on tensor cores: what can be run here is; the texts of the others compile. */
import { expect, test } from 'vitest'
import { toF16 } from '../../src/ir/values/half.ts'
import { coords, dense, load, stored } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { agreeOnLoops } from '../properties/agree.ts'
import { sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { integers, type KernelCase, kernelSuite, matrix, type Pattern, patterns } from '../support/kernels.ts'
import { refusal } from '../support/refusal.ts'

kernelSuite({
  file: 'kernels/gemm-f16.spt',
  alsoWith: [
    ['gemm<f16>', 'wgmma', 256, 128, 4],
    ['gemm<f16>', 'bulk', 256],
    ['gemm<f16>', 'bulk', 64],
    ['gemm<f16>', 'persistent', 7, 128, 64, 4],
  ],
  cases: () =>
    [
      [1, 1, 1],
      [33, 20, 17],
      [5, 40, 0],
    ].map(
      ([m, n, k]): KernelCase => ({
        name: `${m} × ${n} × ${k}`,
        inputs: {
          tensors: { A: integers(m! * k!, 1), B: integers(k! * n!, 2) },
          params: { m: m!, n: n!, k: k! },
        },
        exact: true,
      }),
    ),
})

kernelSuite({
  file: 'kernels/block-sparse-f16.spt',
  alsoWith: [
    ['block_spmm_f16', 'mma', 16, 128, 16, 32, 4],
    ['block_spmm_f16', 'bulk', 64, 64],
    ['block_spmm_f16', 'bulk', 64, 256],
    ['block_spmm_f16', 'columns_first', 64, 64],
    ['block_spmm_f16', 'narrow', 16, 256, 4],
    ['block_spmm_f16', 'warp8', 32, 1, 4],
    ['block_spmm_f16', 'warp8', 8, 2, 2],
    ['block_spmm_f16', 'mma8', 512, 64, 2, 4],
  ],
  cases: () =>
    patterns().map(
      (p): KernelCase => ({
        name: p.name,
        inputs: {
          tensors: { A: matrix(p, integers(p.rows.length, 1)), B: integers(p.n * 18, 2) },
          params: { n: p.n, d: 18 },
        },
        exact: true,
      }),
    ),
})

/** Lists of the rows that a matrix has elements in, one for each column, in groups of `size`; `all` stands for none. */
function groups(p: Pattern, size: number, all: number) {
  const indptr = [0]
  const indices: number[] = []
  for (let c = 0; c < p.n; c++) {
    const own = [...p.rows.filter((_, e) => p.cols[e] === c)].sort((a, b) => a - b)
    for (let at = 0; at < own.length; at += size)
      for (let q = 0; q < size; q++) indices.push(own[at + q] ?? all)
    indptr.push(indices.length / size)
  }
  return { indptr: Int32Array.from(indptr), indices: Int32Array.from(indices) }
}

/** The elements of a pattern, transposed, are what counts of a matrix. */
function gathered(kernel: string, p: Pattern, n: number) {
  const name = `${p.name}, n = ${n}`
  if (kernel === 'gathered_rows') {
    const { indptr, indices } = groups(p, 64, p.m)
    const ir = stored([p.n, p.m, p.m], { go: { indptr }, ir: { indices } })
    const tensors = {
      A: dense([p.m, p.n, 64], integers(p.m * p.n * 64, 1)),
      B: dense([p.n, 64, n], integers(p.n * 64 * n, 2)),
      ir,
    }
    return { name, inputs: { tensors, params: { m: p.m, n, kb: p.n } }, exact: true as const }
  }
  const { indptr, indices } = groups(p, 16, p.m)
  const ko = stored([p.n, p.m, p.m], { go: { indptr }, ko: { indices } })
  const tensors = {
    A: dense([p.m, p.n, 32], integers(p.m * p.n * 32, 1)),
    B: dense([p.m, n], integers(p.m * n, 2)),
    ko,
  }
  return { name, inputs: { tensors, params: { mo: p.n, n, k: p.m } }, exact: true as const }
}

kernelSuite({
  file: 'kernels/gathered-tiles.spt',
  alsoWith: [['gathered_rows', 'wgmma', 256]],
  cases: (kernel) =>
    patterns()
      .filter((p) => p.m * p.n < 1500)
      .map((p, k): KernelCase => gathered(kernel, p, [32, 5, 64][kernel === 'gathered_rows' ? k % 3 : 0]!)),
})

/** The first columns of a pattern. */
function columnsOf(p: Pattern, n: number): Pattern {
  const of = (x: Int32Array): Int32Array => x.filter((_, e) => p.cols[e]! < n)
  return { ...p, n, rows: of(p.rows), cols: of(p.cols) }
}

const gatheredTiles = await load('kernels/gathered-tiles.spt')

/** What is around the instructions is the kernel's: lists of holes, of one row, of more than a group. */
const GATHERED = [
  ['gathered_rows', 'mma', 128],
  ['gathered_rows', 'wgmma', 128],
  ['gathered_columns', 'asynchronous', 32],
] as const
test.each(sample(GATHERED, 3))('%s.%s on its loops', (kernel, schedule, n) => {
  const k = gatheredTiles.kernel(kernel)
  // A column is a block of work, and tells as much as many.
  const list = patterns()
    .filter((p) => ['tall', 'wide', 'empty rows'].includes(p.name))
    .map((p) => columnsOf(p, 5))
  for (const p of sample(list, 1)) {
    const { inputs } = gathered(kernel, p, n)
    const { source, kernel: bindable } = k.schedule(schedule).compilation
    const expected = reference(source, referenceInputs(source, bindInputs(bindable, inputs))).buffers.C!
    const got = interpreted(k.schedule(schedule), inputs).get('C')!
    expect(
      Array.from(got, (x) => Number(x) + 0),
      p.name,
    ).toEqual(Array.from(expected.values))
  }
})

/** Two of each four neighbours in a row, which ones a number says. */
function pruned(m: number, n: number, which: (group: number) => number) {
  const pairs = [0, 1, 2].flatMap((a) => [1, 2, 3].filter((b) => b > a).map((b) => [a, b]))
  const at = Array.from({ length: (m * n) / 4 }, (_, g) =>
    pairs[which(g) % pairs.length]!.map((c) => 4 * g + c),
  ).flat()
  const columns = [Int32Array.from(at, (x) => Math.floor(x / n)), Int32Array.from(at, (x) => x % n)]
  return coords([m, n], columns, integers(at.length, 1))
}

const twoOfFour = (m: number, n: number, d: number) => ({
  name: `${m} × ${n} × ${d}`,
  inputs: {
    tensors: { A: pruned(m, n, (g) => (g * 7) % 11), B: dense([n, d], integers(n * d, 2)) },
    params: { m, n, d },
  },
  exact: true as const,
})

kernelSuite({
  file: 'kernels/sparse-tensor-cores.spt',
  alsoWith: [
    ['spmm_2to4', 'mma', 32, 64, 16, 64, 64, 3],
    ['spmm_2to4', 'mma', 64, 128, 32, 64, 32, 4],
  ],
  cases: () => [twoOfFour(1, 4, 1), twoOfFour(33, 20, 17), twoOfFour(5, 40, 0), twoOfFour(0, 8, 3)],
})

test('2:4 SpMM interpreted on its loops; groups with fewer elements are rejected', async () => {
  const k = (await load('kernels/sparse-tensor-cores.spt'))
    .kernel('spmm_2to4')
    .schedule('mma', 32, 64, 16, 64, 64, 3)
  const { source, kernel: bindable } = k.compilation
  for (const { inputs, name } of [twoOfFour(32, 128, 64), twoOfFour(64, 64, 128)]) {
    const expected = reference(source, referenceInputs(source, bindInputs(bindable, inputs))).buffers.C!
    const got = interpreted(k, inputs).get('C')!
    expect(
      Array.from(got, (x) => Number(x) + 0),
      name,
    ).toEqual(Array.from(expected.values))
  }
  const one = coords([32, 64], [Int32Array.of(3), Int32Array.of(5)], integers(1, 1))
  const tensors = { A: one, B: dense([64, 64], integers(64 * 64, 2)) }
  expect(refusal(() => bindInputs(bindable, { tensors, params: { m: 32, n: 64, d: 64 } })).code).toBe(
    'format/claim',
  )
})

kernelSuite({
  file: 'kernels/gemm-tf32.spt',
  cases: () => [
    {
      name: '33 × 20 × 17',
      inputs: {
        tensors: { A: integers(33 * 17, 1), B: integers(17 * 20, 2) },
        params: { m: 33, n: 20, k: 17 },
      },
      exact: true,
    },
  ],
})

kernelSuite({
  file: 'kernels/sddmm-tensor-cores.spt',
  cases: () =>
    patterns().map(
      (p, k): KernelCase => ({ name: p.name, inputs: sampled(p, [18, 8, 0, 1][k % 4]!), exact: true }),
    ),
})

const sampled = (p: Pattern, d: number) => ({
  tensors: {
    A: matrix(p, integers(p.rows.length, 1)),
    X: dense([p.m, d], integers(p.m * d, 2)),
    Y: dense([p.n, d], integers(p.n * d, 3)),
  },
})

test('SDDMM on tensor cores computes panels and stores the elements of the matrix', async () => {
  const k = (await load('kernels/sddmm-tensor-cores.spt')).kernel('sddmm_tensor_cores')
  for (const [schedule, p] of sample(
    ['mma', 'sorted'].flatMap((s) => patterns().map((x) => [s, x] as const)),
    4,
  )) {
    const c = k.schedule(schedule, 2, 2).compilation
    const bound = bindInputs(c.kernel, sampled(p, 16))
    agreeOnLoops(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
  }
})

test('tokens sorted by expert are stored by one block each, without atomics', async () => {
  const k = (await load('kernels/mixture-of-experts.spt')).kernel('experts_f16')
  const texts = (schedule: string): string =>
    (['cuda', 'wgsl'] as const)
      .flatMap((t) =>
        k
          .schedule(schedule)
          .emit(t)
          .map((m) => m.text),
      )
      .join('\n')
  expect(texts('non_atomic')).not.toMatch(/atomic/i)
  expect(texts('gpu')).toMatch(/atomic/i)
})

/** A pattern as a tensor that has zeros as well. */
const filled = (p: Pattern, values: Float32Array) => {
  const all = new Float32Array(p.m * p.n)
  p.rows.forEach((i, e) => {
    all[i * p.n + p.cols[e]!] = values[e]!
  })
  return dense([p.m, p.n], all)
}

/** The pattern says which tokens an expert has, before the run or in it. */
kernelSuite({
  file: 'kernels/mixture-of-experts.spt',
  alsoWith: [['experts_routed_f16', 'gpu', 8, 8, 4, 3]],
  cases: (kernel) =>
    patterns().map(
      (p, c): KernelCase => ({
        name: p.name,
        inputs: {
          tensors: {
            P: (kernel === 'experts_routed_f16' ? filled : matrix)(p, integers(p.rows.length, 1)),
            X: integers(p.n * [5, 17, 0][c % 3]!, 2),
            W: integers(p.m * [5, 17, 0][c % 3]! * 6, 3),
          },
          params: { k: [5, 17, 0][c % 3]!, n: 6 },
        },
        exact: true,
      }),
    ),
})

/** Gates that are found in a run, under what instructions for no device here do. */
test.each(sample(['wgmma', 'bulk'] as const, 1))(
  'tokens of experts with lists built at run time, under %s, interpreted after each step',
  async (schedule) => {
    const program = await load('kernels/mixture-of-experts.spt')
    const [experts, tokens, k, n] = [3, 140, 128, 64]
    // One expert has none, one more than a tile, and some tokens go to two.
    const p = integers(experts * tokens, 5).map((x, e) =>
      e < tokens ? (e % 2 === 0 ? x : 0) : e < 2 * tokens ? 0 : e % 5 === 0 ? x : 0,
    )
    const [x, w] = [integers(tokens * k, 2), integers(experts * k * n, 3)]
    const Y = Array.from({ length: tokens * n }, (_, e) => {
      const [t, o] = [Math.floor(e / n), e % n]
      let sum = 0
      for (let of = 0; of < experts; of++)
        if (p[of * tokens + t] !== 0)
          for (let q = 0; q < k; q++) sum += p[of * tokens + t]! * x[t * k + q]! * w[(of * k + q) * n + o]!
      return sum
    })
    const half = (values: Float32Array, ...shape: number[]) =>
      dense(shape, Uint16Array.from(values, toF16), 'f16')
    const args = schedule === 'wgmma' ? [64, 2, 2] : [64, 128, 2, 2]
    const got = interpreted(program.kernel('experts_routed_f16').schedule(schedule, ...args), {
      tensors: { P: dense([experts, tokens], p), X: half(x, tokens, k), W: half(w, experts, k, n) },
      params: { experts, tokens, k, n },
    })
    expect(Array.from(got.get('Y')!, (y) => Number(y) + 0)).toEqual(Y)
  },
)

/** The pattern is that of the blocks. */
const blocks = (p: Pattern, b: number, d: number): KernelCase => ({
  name: `${p.name}, b = ${b}, d = ${d}`,
  inputs: {
    tensors: { j: matrix(p, null), X: integers(p.m * b * d, 3), Y: integers(p.n * b * d, 4) },
    params: { b, d },
  },
  exact: true,
})

kernelSuite({
  file: 'kernels/sddmm-block.spt',
  cases: () => {
    const small = patterns().filter((p) => p.m * p.n < 1000)
    return small.map((p, k) => blocks(p, [8, 1, 16, 5, 19][k % 5]!, [17, 32, 1, 0][k % 4]!))
  },
})

const program = await load('kernels/sddmm-block.spt')

/** What instructions do is known to devices; all else that a schedule does is seen here, of others in every run. */
const SAMPLED = [
  ['warp8', [2, 1], 8, 64],
  ['warp8', [8, 2], 8, 64],
  ['warp16', [16, 2, 1], 16, 32],
  ['warp16', [32, 4, 2], 32, 64],
  ['mma', [16, 16, 16, 3], 16, 128],
  ['mma', [32, 32, 16, 2], 32, 64],
  ['wgmma64', [3], 64, 64],
  ['wgmma128', [2], 128, 64],
  ['bulk32', [16, 16, 3], 32, 128],
  ['bulk64', [3], 64, 64],
  ['bulk128', [2], 128, 64],
] as const
test.each(sample(SAMPLED, 3))(
  'block SDDMM under %s(%j), interpreted after each step',
  async (schedule, args, b, d) => {
    const rows = [0, 0, 2, 2, 2].slice(0, b > 32 ? 2 : 5)
    const columns = [1, 3, 0, 1, 2].slice(0, rows.length)
    const [m, n] = [3, 4]
    const j = coords([m, n], [rows, columns], null)
    const [X, Y] = [integers(m * b * d, 3), integers(n * b * d, 4)]
    const C = interpreted(program.kernel().schedule(schedule, ...args), {
      tensors: { j, X: dense([m, b, d], X), Y: dense([n, b, d], Y) },
      params: { b, d },
    }).get('C')
    const dot = (x: number, y: number): number => {
      let sum = 0
      for (let k = 0; k < d; k++) sum += X[x * d + k]! * Y[y * d + k]!
      return sum
    }
    const expected = rows.flatMap((row, e) =>
      Array.from({ length: b * b }, (_, at) => dot(row * b + Math.floor(at / b), columns[e]! * b + (at % b))),
    )
    expect(C).toEqual(expected)
  },
)

/** Six tiles of C: in several rounds, the last of them short; all in one; fewer than blocks of threads. */
test.each(sample([1, 4, 6, 9], 2))(
  'a persistent GEMM by %i blocks, interpreted after each step',
  async (grid) => {
    const gemm = (await load('kernels/gemm-f16.spt')).kernel('gemm<f16>')
    const [m, n, k] = [128, 192, 128]
    const [A, B] = [integers(m * k, 1), integers(k * n, 2)]
    const C = interpreted(gemm.schedule('persistent', grid, 64, 64, 3), {
      tensors: { A: dense([m, k], A), B: dense([k, n], B) },
      params: { m, n, k },
    }).get('C')
    const expected = new Array<number>(m * n).fill(0)
    for (let i = 0; i < m; i++)
      for (let p = 0; p < k; p++)
        for (let j = 0; j < n; j++) expected[i * n + j]! += A[i * k + p]! * B[p * n + j]!
    expect(C).toEqual(expected)
  },
)

const blockSparse = (await load('kernels/block-sparse-f16.spt')).kernel()

/** Rows of blocks of different lengths, one empty; blocks with absent elements. */
const PRODUCTS = [
  ['mma', [32, 64, 32, 32, 3], 32],
  ['narrow', [32, 128, 3], 32],
  ['narrow', [32, 64, 4], 32],
  ['grouped', [32, 128, 2, 3], 32],
  ['grouped', [32, 64, 3, 2], 32],
  ['narrow', [16, 128, 4], 16],
  ['narrow_columns_first', [64, 3], 32],
  ['narrow_serpentine', [64, 3, 3], 32],
  ['serpentine', [64, 64, 3, 2], 64],
  ['warpgroup', [64, 128, 3], 64],
  ['columns_first', [64, 64, 3], 64],
  ['warp8', [2, 2, 3], 8],
  ['warp8', [3, 1, 2], 8],
  ['warp8_columns_first', [4, 1, 4], 8],
  ['mma8', [128, 64, 2, 3], 8],
  ['mma8', [128, 128, 3, 2], 8],
] as const
test.each(sample(PRODUCTS, 3))(
  'block-sparse SpMM under %s(%j), interpreted after each step',
  (schedule, args, b) => {
    const d = 128
    const [m, n] = [4 * b, 5 * b]
    const rows: number[] = []
    const columns: number[] = []
    for (let i = 0; i < m; i++)
      for (let j = i % 5; j < n; j += 5) {
        const row = Math.floor(i / b)
        if (row === 1 || (row !== 2 && (row + Math.floor(j / b)) % 3 > 0)) continue
        rows.push(i)
        columns.push(j)
      }
    const [A, B] = [integers(rows.length, 1), integers(n * d, 2)]
    const C = interpreted(blockSparse.schedule(schedule, ...args), {
      tensors: { A: coords([m, n], [rows, columns], A), B: dense([n, d], B) },
      params: { m, n, d },
    }).get('C')
    const expected = new Array<number>(m * d).fill(0)
    for (const [e, i] of rows.entries())
      for (let f = 0; f < d; f++) expected[i * d + f]! += A[e]! * B[columns[e]! * d + f]!
    expect(C).toEqual(expected)
  },
)
