/** What is counted without running is what the interpreter of plans does, access by access. */
import { expect, test } from 'vitest'
import { instructionsOf } from '../../src/analysis/instructions/match.ts'
import type { Cells } from '../../src/interpret/memory-cells.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import type { Kernel2, Kernel3 } from '../../src/ir/statements/loops.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { load, readTensor } from '../../src/node.ts'
import type { Bound } from '../../src/run/bind/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { countLaunch, knownArrays } from '../../src/run/explain/count.ts'
import { explainModel } from '../../src/run/explain/index.ts'
import { decoder } from '../../src/storage/tensor.ts'
import { assertCases, caseOf } from '../properties/property-cases.ts'
import { Skipped } from '../support/compared.ts'

type Traffic = Record<string, readonly [reads: number, writes: number]>

/** Arrays that note each element read and written, while the plan is interpreted. */
function observed(plan: Kernel3, bound: Bound): Traffic {
  const out: Record<string, [number, number]> = {}
  const memory = new Map<string, Cells>()
  for (const b of plan.buffers) {
    const n = Math.max(0, evaluate(b.shape[0]!, bound.params))
    const read = decoder(b.dtype)
    const given = bound.arrays.get(b.name)
    const cells = given ? Array.from(given, (x) => (read ? read(x) : x)) : new Array<number>(n).fill(0)
    const moved: [number, number] = [0, 0]
    out[b.name] = moved
    memory.set(
      b.name,
      new Proxy(cells, {
        get(target, key) {
          if (key !== 'length') moved[0]++
          return Reflect.get(target, key) as number
        },
        set(target, key, value: number) {
          moved[1]++
          return Reflect.set(target, key, value)
        },
      }),
    )
  }
  interpretPlan(plan, memory, bound.params)
  return out
}

/** Nothing where conditions depend on what the plan computes. */
function counted(plan: Kernel3, loops: Kernel2, bound: Bound): Traffic | undefined {
  const out: Record<string, [number, number]> = Object.fromEntries(
    plan.buffers.map((b) => [b.name, [0, 0] as [number, number]]),
  )
  const given = { params: bound.params, arrays: knownArrays(plan, bound.arrays) }
  for (const step of plan.steps) {
    if (step.kind === 'clear') {
      const b = plan.buffers.find((x) => x.name === step.buffer)!
      out[step.buffer]![1] += Math.max(0, evaluate(b.shape[0]!, bound.params))
      continue
    }
    if (step.kind !== 'launch') continue
    const { arrays, certainty } = countLaunch(step, plan.buffers, given, instructionsOf(loops))
    if (certainty.hasAssumptions) return undefined
    expect(certainty.sampledFraction).toBe(1)
    for (const [name, a] of arrays) {
      out[name]![0] += a.loads + a.atomics
      out[name]![1] += a.stores + a.atomics
    }
  }
  return out
}

const CASES = 30

test('any program under any schedule: elements loaded and stored', async () => {
  await assertCases(
    (choices) => caseOf(choices, 4),
    (k) => {
      let compared = 0
      for (const c of [k.compilation, k.compilation.parallel()])
        for (const options of [{}, { lanes: 32 }]) {
          const plan = c.planFor(options)
          const count = counted(plan, c.loops, k.bound)
          if (!count) continue
          expect(count).toEqual(observed(plan, k.bound))
          compared++
        }
      if (compared === 0) throw new Skipped('every count has assumptions')
    },
    CASES,
  )
})

const TEXT = `
kernel product(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule product.rows(rows, cols) {
  reorder (i, f, j)
  split i by rows -> (io, ii)
  split f by cols -> (fo, fi)
  reorder (io, fo, ii, fi, j)
  bind io to block.x, fo to block.y, ii to thread.y, fi to thread.x
  cache_write C at fi in register
}
kernel dense(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate mm [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}
schedule dense.tiled(t) {
  split i by t -> (io, ii)
  split j by t -> (jo, ji)
  split p by t -> (po, pi)
  reorder (io, jo, ii, ji, po, pi)
  bind io to block.y, jo to block.x, ii to thread.y, ji to thread.x
  cache_write C at ji in register
  cache_read A at po in shared
  cache_read B at po in shared
}`
const program = await load(TEXT)
const cora = await readTensor('data/cora.mtx')

test('a sparse product by hand: every nonzero reads a row of B', () => {
  const c = program.kernel('product').schedule('rows', 4, 32).compilation
  const d = 40
  const nnz = 10_556
  const m = 2708
  const bound = bindInputs(c.kernel, { tensors: { A: cora }, params: { d }, seed: 1 })
  const [launch] = explainModel(c, bound, 'cuda').launches
  expect([launch!.blocks, launch!.threads]).toEqual([677 * 2, 128])
  const of = (name: string): unknown[] => {
    const a = launch!.arrays.find((x) => x.array === name)!
    return [a.elements, a.loads, a.stores, a.atomics]
  }
  expect(of('A')).toEqual([nnz, nnz * d, 0, 0])
  expect(of('B')).toEqual([m * d, nnz * d, 0, 0])
  expect(of('C')).toEqual([m * d, 0, m * d, 0])
  expect(of('j_indices')).toEqual([nnz, nnz * d, 0, 0])
  expect(launch!.operations).toEqual({ scalar: 2 * nnz * d, matrix16: 0, matrix32: 0, matrixOther: 0 })
  expect(launch!.bytes.compulsory).toBe(4 * (2 * nnz + 2 * m * d + m + 1))
  expect(launch!.certainty).toEqual({ sampledFraction: 1, hasAssumptions: false })
})

test('a dense product by hand: tiles divide the traffic of global memory', () => {
  const c = program.kernel('dense').schedule('tiled', 16).compilation
  const [m, n, k, t] = [64, 48, 80, 16]
  const bound = bindInputs(c.kernel, { params: { m, n, k }, seed: 1 })
  const { launches, total } = explainModel(c, bound, 'cuda')
  const [launch] = launches
  expect(launch!.arrays.map((a) => [a.array, a.loads, a.stores])).toEqual([
    ['A', (m * n * k) / t, 0],
    ['B', (m * n * k) / t, 0],
    ['C', 0, m * n],
  ])
  expect(launch!.sharedBytes).toBe(2 * 4 * t * t)
  expect(launch!.bytes.sharedLoaded).toBe(4 * 2 * m * n * k)
  expect(launch!.bytes.sharedStored).toBe((4 * 2 * m * n * k) / t)
  expect(total.operations.scalar).toBe(2 * m * n * k)
  expect(total.intensity).toBe((2 * m * n * k) / (4 * (m * k + k * n + m * n)))
})

test('shared memory equals that of the generated code: arrays with disjoint lifetimes share storage on CUDA', async () => {
  const gemm = await load('kernels/gemm-f16.spt')
  const c = gemm.kernel('gemm<f16>').schedule('bulk', 256).parallel().compilation
  const bound = bindInputs(c.kernel, { params: { m: 128, n: 256, k: 64 }, seed: 1 })
  const [entry] = c.texts('cuda').flatMap((t) => t.entries)
  const on = (kind: 'cuda' | 'webgpu') => explainModel(c, bound, kind).launches.map((l) => l.sharedBytes)
  expect(entry!.sharedBytes).toBeGreaterThan(0)
  expect(on('cuda')).toEqual([entry!.sharedBytes])
  // Apart, there is one tile of C beside the stages.
  expect(on('webgpu')[0]! - entry!.sharedBytes).toBeGreaterThanOrEqual(2 * 128 * 256)
})

test('if too many threads differ, a sample of them represents all', () => {
  const c = program.kernel('product').schedule('rows', 4, 32).compilation
  const bound = bindInputs(c.kernel, { tensors: { A: cora }, params: { d: 40 }, seed: 1 })
  const plan = c.planFor({ lanes: 32 })
  const launch = plan.steps.find((s) => s.kind === 'launch')!
  const given = { params: bound.params, arrays: knownArrays(plan, bound.arrays) }
  const part = countLaunch(launch, plan.buffers, given, new Map(), 20_000)
  expect(part.certainty.sampledFraction).toBeGreaterThan(0)
  expect(part.certainty.sampledFraction).toBeLessThan(0.2)
  const loads = part.arrays.get('B')!.loads
  expect(Math.abs(loads / (10_556 * 40) - 1)).toBeLessThan(0.1)
})

test('conditions on computed values count as true, which is reported', async () => {
  const k = (
    await load(`kernel k(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer T: f32[i] local
  buffer Y: f32[i] out
  iterate a [i] as S { T[i] = X[i] * 2 }
  iterate b [i] as S { Y[i] = select(T[i] > 0, X[i], 0) }
}`)
  ).kernel().compilation
  const bound = bindInputs(k.kernel, { params: { n: 10 }, seed: 1 })
  const { launches } = explainModel(k, bound, 'cpu')
  expect(launches.map((l) => l.certainty.hasAssumptions)).toEqual([false, true])
  expect(launches[1]!.arrays.find((a) => a.array === 'X')!.loads).toBe(10)
})

test('matrix units with f32 operands are counted separately', async () => {
  const c = (await load('kernels/gemm-tf32.spt')).kernel('gemm_tf32').schedule('mma').compilation
  const [m, n, k] = [256, 128, 64]
  const bound = bindInputs(c.kernel, { params: { m, n, k }, seed: 1 })
  const { total } = explainModel(c, bound, 'cuda')
  expect(total.operations).toEqual({ scalar: 0, matrix16: 0, matrix32: 2 * m * n * k, matrixOther: 0 })
})

test('instructions count as declared', async () => {
  const c = (await load('kernels/gemm-f16.spt')).kernel('gemm<f16>').schedule('mma').compilation
  const [m, n, k] = [256, 128, 64]
  const bound = bindInputs(c.kernel, { params: { m, n, k }, seed: 1 })
  const [launch] = explainModel(c, bound, 'cuda').launches
  expect(launch!.operations).toEqual({ scalar: 0, matrix16: 2 * m * n * k, matrix32: 0, matrixOther: 0 })
  expect(launch!.arrays.map((a) => [a.array, a.elementBytes, a.loads, a.stores])).toEqual([
    ['A', 2, (m * n * k) / 128, 0],
    ['B', 2, (m * n * k) / 128, 0],
    ['C', 2, 0, m * n],
  ])
})

test.each(['n == 4', 'n % 4 == 0'])('sizes that a schedule excludes are not explained: %s', async (fact) => {
  const text = `kernel k(n: size) {
    axis i = dense_fixed(n)
    buffer Y: f32[i] out
    iterate all [i] as S { Y[i] = 1 }
  }
  schedule k.s { require ${fact} }`
  const c = (await load(text)).kernel().schedule('s').compilation
  const of = (n: number) => explainModel(c, bindInputs(c.kernel, { params: { n } }), 'cpu')
  expect(() => of(5)).toThrow(`run/requirement: the schedule of k requires ${fact}, and n is 5`)
  expect(of(4).launches).toHaveLength(1)
})

test('known arrays are inputs of types that are stored as numbers', async () => {
  const k = (
    await load(`kernel k(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer H: f16[i] in
  buffer B: bf16[i] in
  buffer M: i32[i] in
  buffer Y: f32[i] out
  iterate a [i] as S { Y[i] = X[i] + f32(H[i]) + f32(B[i]) + f32(M[i]) }
}`)
  ).kernel().compilation
  const { arrays } = bindInputs(k.kernel, { params: { n: 4 }, seed: 1 })
  expect([...knownArrays(k.planFor({}), new Map([...arrays, ['Y', new Float32Array(4)]])).keys()]).toEqual([
    'X',
    'M',
  ])
  expect([...knownArrays(k.planFor({}), new Map()).keys()]).toEqual([])
})
