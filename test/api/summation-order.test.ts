/** `deterministic`: whether threads add floats to one element in the order in which they arrive. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { resultOrError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { TARGETS } from '../../src/backends/targets/index.ts'
import { coords, type Device, dense, devices, instructionTest, type Kernel, load } from '../../src/node.ts'
import { unorderedSums } from '../../src/run/verify/unordered-sums.ts'
import { scaled } from '../support/cases.ts'

let webgpu: Device
let cpu: Device
beforeAll(async () => {
  webgpu = await devices.webgpu()
  cpu = await devices.cpu()
})
afterAll(async () => {
  await webgpu.dispose()
  await cpu.dispose()
})

const spmm = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
const sumsOf = ({ compilation }: Kernel, kind: 'cpu' | 'cuda' | 'webgpu') =>
  unorderedSums(compilation.loops, compilation.plan, kind)

describe.each([
  ['hyb', ['C']],
  ['balanced', ['C']],
  ['pieces', ['C']],
  ['gpu', []],
  ['hyb_combined', []],
  ['hyb_pieces', []],
  ['balanced_ordered', []],
  ['ahead_merged', []],
])('under %s', (name, buffers) => {
  test('threads of a GPU add to these buffers in any order', () => {
    for (const kind of ['webgpu', 'cuda'] as const)
      expect([...new Set(sumsOf(spmm.schedule(name), kind).map((s) => s.buffer))]).toEqual(buffers)
  })
})

/** Sums of all elements of a row, which atomic updates share out over `j`. */
const reduced = (dtype: string, op: string, declared = '') => `${declared}
kernel q(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: ${dtype}[i, j] in
  buffer C: ${dtype}[i] out
  iterate t [i, j] as SR { C[i] ${op} A[i, j] }
}
schedule q.shared { atomic C bind j to block.x, i to thread.x }`
test.each([
  ['f32', '+=', false],
  ['f16', '+=', false],
  ['f32', '*=', false],
  ['f32', 'max=', true],
  ['f32', 'min=', true],
  ['i32', '+=', true],
  ['i32', '*=', true],
  ['u32', 'max=', true],
])('atomic updates of %s by %s: order-independent is %s', async (dtype, op, fixed) => {
  const text = reduced(dtype, op).replace('i to thread.x', 'i to block.y')
  const kernel = (await load(text)).kernel('q').schedule('shared')
  expect(sumsOf(kernel, 'cuda').length === 0).toBe(fixed)
})

test.each([
  ['f32', false],
  ['i32', true],
])('instructions that update %s atomically count as what they declare', async (dtype, fixed) => {
  const program = await load(`instr add2(D: ${dtype}[2] in global, R: ${dtype}[2] in register) atomic {
  iterate add [i] as S {
    D[i] += R[i]
  }
  js \`$D[$D.index(0)] += $R[0]; $D[$D.index(1)] += $R[1]\`
}`)
  const { kernel } = instructionTest(program.instructions.get('add2')!)
  expect(sumsOf(kernel, 'cuda').length === 0).toBe(fixed)
})

test.each(['spmm', 'sddmm', 'spmv', 'gcn', 'rgcn'])(
  'on cpu every schedule of %s has one order',
  async (file) => {
    const program = await load(`sparsetile/kernels/${file}.spt`)
    let compared = 0
    for (const name of program.kernels) {
      const kernel = program.kernel(name)
      for (const s of kernel.schedules
        .filter((x) => kernel.parameters(x).every((p) => !p.required))
        .slice(0, 8)) {
        const { compilation } = kernel.schedule(s)
        const plan = resultOrError(() => compilation.planFor(TARGETS.js.lowering))
        if (plan instanceof SptError) continue
        expect(unorderedSums(compilation.loops, plan, 'cpu')).toEqual([])
        compared++
      }
    }
    expect(compared).toBeGreaterThan(scaled(2))
  },
)

test('compiled and prepared kernels report the order, and a fixed order gives equal bits', async () => {
  const at = Array.from({ length: 900 }, (_, k) => k)
  const A = coords(
    [60, 40],
    [at.map((k) => (k * 7) % 60), at.map((k) => (k * k + k) % 40)],
    at.map((k) => Math.sin(k)),
  )
  const B = dense(
    [40, 64],
    Float32Array.from({ length: 40 * 64 }, (_, k) => Math.cos(k)),
  )
  for (const [name, fixed] of [
    ['hyb', false],
    ['hyb_combined', true],
    ['gpu', true],
  ] as const) {
    const compiled = await spmm.schedule(name).build(webgpu, { auto: false })
    const prepared = await compiled.bind({ A, B })
    expect([compiled.deterministic, prepared.deterministic, compiled.unorderedSums.length === 0]).toEqual([
      fixed,
      fixed,
      fixed,
    ])
    const { unorderedSums: explained } = await prepared.explain({ time: false })
    expect(explained).toEqual(compiled.unorderedSums)
    if (!fixed) continue
    const seen = new Set<string>()
    for (let k = 0; k < 3; k++) {
      await prepared.run()
      seen.add((await prepared.get('C')).values!.join())
    }
    expect(seen.size).toBe(1)
    prepared.free()
  }
  expect((await spmm.schedule('hyb').build(cpu, { auto: false })).deterministic).toBe(true)
})

describe('built with `deterministic`', () => {
  const at = Array.from({ length: 900 }, (_, k) => k)
  const A = coords(
    [60, 40],
    [at.map((k) => (k * 7) % 60), at.map((k) => (k * k + k) % 40)],
    at.map((k) => Math.sin(k)),
  )
  const B = dense(
    [40, 64],
    Float32Array.from({ length: 40 * 64 }, (_, k) => Math.cos(k)),
  )
  const bits = (t: { values: unknown }) => (t.values as Float32Array).join()

  test('a fixed schedule with an unordered sum is rejected by the name of the sum', async () => {
    await expect(spmm.schedule('hyb').build(webgpu, { deterministic: true })).rejects.toThrow(
      'choose/unordered-sum: the result of kernel spmm is not deterministic: spmm_1 updates C by `+` in no fixed order',
    )
    expect((await spmm.schedule('hyb').build(cpu, { deterministic: true })).deterministic).toBe(true)
  })

  test('a dispatch skips such a schedule with the reason, and 15 runs give equal bits', async () => {
    const text = `import { spmm } from "sparsetile/kernels/spmm.spt"
schedule spmm.pick choose { when (d > 2) hyb otherwise gpu }
schedule spmm.both choose { when (d > 2) fastest { hyb  hyb_combined } otherwise gpu }`
    const program = await load(text)
    for (const [name, expected] of [
      ['pick', 'gpu'],
      ['both', 'hyb_combined'],
    ] as const) {
      const kernel = program.kernel('spmm').schedule(name)
      expect((await (await kernel.build(webgpu)).bind({ A, B })).selection!.text).toMatch(/^hyb/)
      const fn = await kernel.build(webgpu, { deterministic: true })
      expect(fn.deterministic).toBe(true)
      const binding = await fn.bind({ A, B })
      const { text: selected, rejectedBranches } = binding.selection!
      expect(selected).toBe(expected)
      expect(rejectedBranches[0]).toContain('hyb: spmm_1 updates C by `+` in no fixed order')
      const seen = new Set<string>()
      for (let k = 0; k < 15; k++) {
        await binding.run()
        seen.add(bits(await binding.get('C')))
      }
      expect(seen.size).toBe(1)
      binding.free()
    }
  })
})

test('sizes select at once: the schedule is compiled by build, and bindings compile nothing', async () => {
  const program = await load(`import { spmm } from "sparsetile/kernels/spmm.spt"
schedule spmm.pick choose { when (d > 2) gpu otherwise hyb }`)
  const kernel = program.kernel('spmm').schedule('pick')
  const open = await kernel.build(webgpu)
  expect([open.dispatch, open.selection]).toEqual(['pick', null])
  const fn = await kernel.build(webgpu, { sizes: { d: 64 } })
  expect([fn.dispatch, fn.selection?.text]).toEqual([null, 'gpu'])
  await expect(kernel.build(webgpu, { sizes: { e: 3 } })).rejects.toThrow('bind/unknown-name')
})
