/** Kernels without a schedule on matrices with rows of very different lengths: which format they take, and what they compute then. */

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildDefault } from '../../src/api/built/build.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { CoordTensor, Device, Kernel, Tensor } from '../../src/node.ts'
import { coords, devices, load, stored } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Workspace } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { asHardware } from '../support/hardware.ts'

const AXES = `
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in`

/** What is summed over rows, over columns, by itself, and in several steps of a row. */
const KERNELS: Readonly<Record<string, string>> = {
  rows: `kernel rows(m: size, n: size, d: size) {${AXES}
    buffer B: f32[jd, f] in
    buffer C: f32[i, f] out
    iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
  }`,
  elements: `kernel elements(m: size, n: size, d: size) {${AXES}
    buffer B: f32[i, f] in
    buffer D: f32[jd, f] in
    buffer E: f32[i, j] out
    iterate dot [i, j, f] as SSR { E[i, j] += A[i, j] * B[i, f] * D[j, f] }
  }`,
  several: `kernel several(m: size, n: size, d: size) {${AXES}
    buffer U: f32[f] in
    buffer L: f32[i] out
    buffer R: f32[i] out
    buffer V: f32[f] out
    iterate copy [f] as S { V[f] = U[f] }
    iterate both [i, j] as SR { L[i] min= A[i, j]; R[i] += A[i, j] }
  }`,
  shifted: `kernel shifted(m: size, n: size, d: size) {${AXES}
    buffer U: f32[f] in
    buffer M: f32[i] local
    buffer Z: f32[i] local
    buffer P: f32[i, j] out
    buffer V: f32[f] out
    iterate copy [f] as S { V[f] = U[f] }
    iterate row [i] as S {
      iterate peak [j] as R { M[i] max= A[i, j] }
      iterate total [j] as R { Z[i] += A[i, j] - max(M[i], -9) }
      iterate mix [j] as S { P[i, j] = A[i, j] + Z[i] }
    }
  }`,
}
const IMPORTS = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"`

let on: readonly Device[]
const kernels = new Map<string, Kernel>()
beforeAll(async () => {
  on = [await devices.cpu(), asHardware(await createNodeWebGpu())]
  for (const [name, text] of Object.entries(KERNELS))
    kernels.set(name, (await load(`${text}\n${IMPORTS}`)).kernel())
})
afterAll(async () => {
  for (const d of on) await d.dispose()
})

/** Short rows, and a few that have most columns; coordinates in any order. */
const uneven = fc
  .record({
    m: fc.integer({ min: 20, max: 120 }),
    n: fc.integer({ min: 40, max: 700 }),
    hubs: fc.integer({ min: 1, max: 2 }),
    seed: fc.integer({ min: 1, max: 1 << 20 }),
  })
  .map(({ m, n, hubs, seed }) => matrix(m, n, hubs, seed))

function matrix(m: number, n: number, hubs: number, seed: number, most = n): CoordTensor {
  // Large ones have a million: numbers, which no comparison sorts.
  const mixed: number[][] = Array.from({ length: 101 }, () => [])
  const period = n % 11 === 0 ? n / 11 : n
  // Rows come once, unless 7 divides their number.
  const held = m % 7 === 0 ? new Set<number>() : null
  for (let r = 0; r < m; r++) {
    const row = (r * 7 + seed) % m
    const columns = r < hubs ? most : (r + seed) % 3
    for (let k = 0; k < Math.min(columns, period); k++) {
      const column = (k * 11 + r * 5) % n
      const at = row * n + column
      if (held?.has(at)) continue
      held?.add(at)
      mixed[(row * 31 + column * 17 + seed) % 101]!.push(at)
    }
  }
  const rows = Int32Array.from(mixed.flat(), (at) => Math.floor(at / n))
  const columns = Int32Array.from(mixed.flat(), (at) => at % n)
  const values = Float32Array.from(rows, (a, e) => ((a * 5 + columns[e]! * 3 + seed) % 9) - 4)
  return coords([m, n], [rows, columns], values)
}

const formatsOf = (k: Kernel): number => k.compilation.kernel.reformats.length

test('on rows of very different lengths the default schedule, and every variant in another format, agrees with the reference', async () => {
  const cases = fc.record({
    name: fc.constantFrom(...kernels.keys()),
    A: uneven,
    d: fc.constantFrom(1, 4, 9),
    k: fc.integer({ min: 0, max: 1 }),
    which: fc.nat(3),
    seed: fc.nat(1000),
  })
  // In another format it runs on a GPU alone: what is drawn may all be of the host.
  const onGpu = { name: 'rows', A: matrix(30, 300, 2, 7), d: 1, k: 1, which: 0, seed: 1 }
  let others = 0
  await fc.assert(
    fc.asyncProperty(cases, async ({ name, A, d, k, which, seed }) => {
      const [kernel, device] = [kernels.get(name)!, on[k]!]
      const inputs = { tensors: { A }, params: { d }, seed }
      const forms = kernel.inspect
        .scheduleCandidates(device, { d }, { A })
        .filter((f) => formatsOf(f.kernel) > 0)
      others += forms.length
      const other = forms[which % Math.max(1, forms.length)]
      const unasked = await kernel.build(device)
      const plain = await (await kernel.build(device, { auto: false }))(...flatInputs(inputs))
      for (const compiled of [
        unasked,
        ...(other ? [await other.kernel.build(device, { auto: false })] : []),
      ]) {
        const prepared = await compiled.bind(...flatInputs(inputs))
        try {
          expect((await prepared.verify()).problems.slice(0, 1)).toEqual([])
          const changed = A.values!.map((x: number) => 1 - x)
          await prepared.set('A', Float32Array.from(changed as Iterable<number>))
          expect((await prepared.verify()).problems.slice(0, 1)).toEqual([])
          // Elements as the kernel as written gives them, in the same order.
          for (const [name, t] of Object.entries(await prepared.outputs())) {
            const before = plain[name]!
            if (t.kind === 'coords' && before.kind === 'coords')
              expect(t.coords.map((c) => [...c])).toEqual(before.coords.map((c) => [...c]))
            else expect(t.kind).toBe(before.kind)
          }
        } finally {
          prepared.free()
          compiled.release()
        }
      }
    }),
    { numRuns: runs(12), examples: [[onGpu]] },
  )
  expect(others).toBeGreaterThan(0)
})

/** Some long rows among many short ones. */
const long = (): CoordTensor => matrix(20_000, 20_000, 40, 3, 3000)

test('a long row among short ones is stored separately, and uniform rows and tensors with a format are unchanged', () => {
  const kernel = kernels.get('shifted')!
  const taken = (k: Kernel, device: 'cuda' | 'webgpu' | 'cpu', A: Tensor) =>
    k.inspect.scheduleCandidates(device, { d: 4 }, { A })
  const forms = taken(kernel, 'cuda', long())
  expect(formatsOf(forms[0]!.kernel)).toBe(1)
  expect(forms[0]!.text).toMatch(/^A\.format = /)
  const declared = forms.filter((f) => formatsOf(f.kernel) === 0)
  expect(declared.length).toBeGreaterThan(0)
  expect(forms[0]!.milliseconds!).toBeLessThan(Math.min(...declared.map((f) => f.milliseconds!)))
  expect(new Set(forms.map((f) => f.text)).size).toBe(forms.length)
  const none = (k: Kernel, device: 'cuda' | 'cpu', A: Tensor, own = 0) =>
    expect(taken(k, device, A).every((f) => formatsOf(f.kernel) === own)).toBe(true)
  none(kernel, 'cpu', long())
  none(kernel, 'cuda', matrix(20_000, 20_000, 0, 3))
  none(kernel.as('A', 'csr'), 'cuda', long(), 1)
  // Arrays that somebody has are bound as they are.
  const indptr = Int32Array.from({ length: 101 }, (_, r) => (r === 0 ? 0 : 4000 + r))
  const indices = Int32Array.from({ length: 4100 }, (_, e) => (e < 4001 ? e : 0))
  none(kernel, 'cuda', stored([100, 9000], { j: { indptr, indices } }, new Float32Array(4100)))
})

test('data run in the reported format, from the host and from a workspace', async () => {
  const kernel = kernels.get('elements')!
  const device = on[1]!
  const A = matrix(20_000, 20_000, 400, 3, 3000)
  const first = kernel.inspect.scheduleCandidates(device, { d: 16 }, { A })[0]!
  expect(formatsOf(first.kernel)).toBe(1)
  const inputs = { tensors: { A }, params: { d: 16 }, seed: 1 }
  const { built: compiled } = await buildDefault(kernel, device)
  const data = new Workspace(device, kernel, ...flatInputs(inputs))
  for (const prepared of [await compiled.bind(...flatInputs(inputs)), await data.bind(compiled)]) {
    expect(prepared.code.compilation.printedLoopSteps).toEqual(first.kernel.compilation.printedLoopSteps)
    expect(prepared.formats.length).toBeGreaterThan(0)
    prepared.free()
  }
  compiled.release()
})
