/** Outputs that stay on the device: kernels bound to them compute what they compute from the host's copies. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { bindResident, convertForKernel, upload } from '../../src/device.ts'
import {
  type Binding,
  type Built,
  coords,
  type Device,
  dense,
  devices,
  type Kernel,
  load,
  type ResidentDense,
  type SptProgram,
} from '../../src/node.ts'
import { Turns } from '../../src/run/execution/call-queue.ts'
import { Workspace } from '../../src/search.ts'
import { fakeDevice } from '../runtime/cuda-fake.ts'
import { runs } from '../support/cases.ts'
import { complaint } from './support.ts'

const TEXT = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/spmm.spt"
import "sparsetile/kernels/gcn.spt"
import "sparsetile/kernels/gemm.spt"
kernel relu(m: size, d: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(d)
  buffer X: f32[i, f] in
  buffer Y: f32[i, f] out
  iterate s [i, f] as SS { Y[i, f] = max(X[i, f], 0) }
}
kernel residual(m: size, d: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(d)
  buffer X: f32[i, f] in
  buffer Z: f32[i, f] in
  buffer Y: f32[i, f] out
  iterate s [i, f] as SS { Y[i, f] = X[i, f] - 2 * Z[i, f] }
}
kernel counts(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer D: f32[i, j] out
  buffer t: f32[i] inout
  buffer c: i32[i] out
  iterate s [i, j] as SR { t[i] += A[i, j] }
  iterate u [i, j] as SR { c[i] += 1 }
  iterate v [i, j] as SS { D[i, j] = A[i, j] }
}
kernel many(n: size) {
  axis i = dense_fixed(n)
  buffer a: f32[i] in
  buffer b: f32[i] in
  buffer c: f32[i] in
  buffer y: f32[i] out
  iterate s [i] as S { y[i] = a[i] + b[i] + c[i] }
}
schedule many.blocked(b) { a as blocks(b) }
format blocks(b) over (i) {
  axis io = dense_fixed(ceildiv(i, b))
  axis ii = dense_fixed(b)
  map (i) -> (i / b, i % b)
  inverse (io, ii) -> (io * b + ii)
}
`
let program: SptProgram
beforeAll(async () => {
  program = await load(TEXT)
})

/** A layer: which of its buffers the features are, and what else it takes. */
interface Layer {
  readonly kernel: string
  readonly input: string
  readonly output: string
}
const LAYERS = [
  { kernel: 'spmm', input: 'B', output: 'C' },
  { kernel: 'gcn', input: 'X', output: 'Y' },
  { kernel: 'gemm', input: 'A', output: 'C' },
  { kernel: 'relu', input: 'X', output: 'Y' },
  { kernel: 'residual', input: 'X', output: 'Y' },
] as const satisfies readonly Layer[]
/** What is to be compiled: with a schedule that the data choose where there is a name. */
const FORMS = [...LAYERS.map(({ kernel }) => [kernel, kernel] as const), ['gemm.auto', 'gemm'] as const]

/** Inputs of a layer beside the features, of small integers. */
function inputsOf(
  { kernel }: Layer,
  nodes: number,
  seed: number,
): { inputs: RunInputs; columns: number | null } {
  const small = (n: number): Float32Array =>
    Float32Array.from({ length: n }, (_, k) => ((k * 7 + seed) % 5) - 2)
  const at = Array.from({ length: nodes * 2 }, (_, k) => [(k * 3 + seed) % nodes, (k * k + seed) % nodes])
  const edges = [...new Map(at.map((x) => [String(x), x])).values()]
  const A = coords([nodes, nodes], [edges.map(([i]) => i!), edges.map(([, j]) => j!)], small(edges.length))
  const columns = 1 + (seed % 4)
  if (kernel === 'spmm') return { inputs: { tensors: { A } }, columns: null }
  if (kernel === 'gcn') return { inputs: { tensors: { A, b: small(0) } }, columns: null }
  if (kernel === 'gemm') return { inputs: { tensors: {}, params: { alpha: 2 } }, columns }
  return { inputs: { tensors: {} }, columns: null }
}

const chains = fc.record({
  layers: fc.array(fc.constantFrom(...LAYERS), { minLength: 2, maxLength: 4 }),
  nodes: fc.integer({ min: 1, max: 6 }),
  features: fc.integer({ min: 1, max: 5 }),
  seed: fc.nat(100),
  choose: fc.boolean(),
  graph: fc.boolean(),
  awaited: fc.boolean(),
  freeFirst: fc.boolean(),
})

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  const compiled = new Map<string, Built>()
  /** Calls of the device that move or make data, by now. */
  const calls = { alloc: 0, upload: 0, download: 0, live: 0 }

  beforeAll(async () => {
    device = await devices[kind]()
    for (const [form, kernel] of FORMS) {
      const source: Kernel = program.kernel(kernel)
      compiled.set(form, await (form === kernel ? source : source.schedule('auto')).build(device))
    }
    const { alloc, upload, download } = device
    device.alloc = (bytes, label) => {
      calls.alloc++
      calls.live++
      const buffer = alloc.call(device, bytes, label)
      const free = buffer.free.bind(buffer)
      let isLive = true
      buffer.free = () => {
        if (isLive) calls.live--
        isLive = false
        free()
      }
      return buffer
    }
    device.upload = (...args) => {
      calls.upload++
      return upload.apply(device, args)
    }
    device.download = (...args) => {
      calls.download++
      return download.apply(device, args)
    }
  })
  afterAll(() => device.dispose())

  test('a chain gives the same results as separate kernels, without copies to the host', async () => {
    await fc.assert(
      fc.asyncProperty(
        chains,
        async ({ layers, nodes, features, seed, choose, graph, awaited, freeFirst }) => {
          const before = calls.live
          const prepared: Binding[] = []
          const outputs: ResidentDense[] = []
          const others: { readonly compiled: Built; readonly inputs: RunInputs }[] = []
          const values = (round: number): Float32Array =>
            Float32Array.from({ length: nodes * features }, (_, k) => ((k * 5 + seed + 3 * round) % 7) - 3)
          const X = dense([nodes, features], values(0))
          let d = features
          for (const [k, layer] of layers.entries()) {
            const { inputs, columns } = inputsOf(layer, nodes, seed + k)
            const tensors = { ...inputs.tensors }
            const small = (n: number): Float32Array =>
              Float32Array.from({ length: n }, (_, e) => ((e + k + seed) % 3) - 1)
            if (layer.kernel === 'gcn') tensors.b = small(d)
            if (columns) tensors.B = dense([d, columns], small(d * columns))
            const own = { ...inputs, tensors }
            const kernel = compiled.get(choose && layer.kernel === 'gemm' ? 'gemm.auto' : layer.kernel)!
            others.push({ compiled: kernel, inputs: own })
            const from = outputs.at(-1) ?? X
            // The second operand may be the same tensor, or what is two layers before.
            const second =
              outputs.findLast((h, e) => (e < k - 1 || seed % 2 === 0) && h.shape[1] === d) ?? from
            if (layer.kernel === 'residual') Object.assign(tensors, { Z: second })
            prepared.push(
              await kernel.bind(...flatInputs({ ...own, tensors: { ...tensors, [layer.input]: from } })),
            )
            outputs.push(prepared.at(-1)!.output(layer.output))
            if (columns) d = columns
          }
          for (const [k, h] of outputs.entries()) {
            const memory = prepared[k + 1]?.commands.flatMap((c) => (c.kind === 'launch' ? c.args : []))
            expect(memory === undefined || h.bytes === 0 || memory.includes(h.memory)).toBe(true)
          }
          const whole = graph ? await device.graph(prepared.flatMap((p) => p.commands)) : null
          const last = prepared.at(-1)!
          for (let round = 0; round < 3; round++) {
            const written = prepared[0]!.set(layers[0]!.input, values(round))
            if (awaited || graph) await written
            const now = { ...calls }
            if (whole) {
              whole.launch()
              await device.finish()
            } else if (awaited) for (const p of prepared) await p.run()
            else await Promise.all([written, ...prepared.map((p) => p.run())])
            expect(calls).toEqual(now)
            // One by one, with what each gave as the host has it.
            const there: (typeof X)[] = []
            for (const [k, layer] of layers.entries()) {
              const { compiled: kernel, inputs } = others[k]!
              const tensors: Record<string, unknown> = { ...inputs.tensors }
              const given = tensors.Z
              if (given) {
                const e = outputs.indexOf(given as ResidentDense)
                tensors.Z = e < 0 ? X : there[e]!
              }
              tensors[layer.input] = there.at(-1) ?? dense(X.shape, values(round))
              const out = await kernel(
                ...flatInputs({ ...inputs, tensors: tensors as RunInputs['tensors'] & {} }),
              )
              there.push(out[layer.output] as typeof X)
            }
            expect(await last.get(layers.at(-1)!.output)).toEqual(there.at(-1))
            for (const [k, h] of outputs.entries()) expect(await h.download()).toEqual(there[k])
          }
          for (const p of prepared) expect((await p.verify()).problems).toEqual([])
          whole?.free()
          for (const [k, p] of (freeFirst ? prepared : prepared.toReversed()).entries()) {
            p.free()
            p.free()
            if (freeFirst && k + 1 < prepared.length) {
              expect(outputs[k]!.freed).toBe(false)
              await prepared[k + 1]!.run()
            }
          }
          expect([outputs.every((h) => h.freed), calls.live - before]).toEqual([true, 0])
        },
      ),
      { numRuns: runs(kind === 'cpu' ? 12 : 4) },
    )
  })

  test('a kernel without a schedule selects the same variant as from the host', async () => {
    const first = await compiled.get('relu')!.bind({ X: dense([4, 3], new Float32Array(12)) })
    const B = dense([3, 2], Float32Array.of(1, 2, 3, 4, 5, 6))
    const params = { alpha: 1 }
    const gemm = compiled.get('gemm')!
    const there = await gemm.bind({ A: first.output('Y'), B, ...params })
    const here = await gemm.bind({ A: dense([4, 3], new Float32Array(12)), B, ...params })
    expect(there.code).toBe(here.code)
    for (const p of [first, there, here]) p.free()
  })

  test('a freed output is rejected by its kernel and by its consumers', async () => {
    const relu = compiled.get('relu')!
    const first = await relu.bind({ X: dense([1, 2], Float32Array.of(-1, 5)) })
    const Y = first.output('Y')
    const second = await relu.bind({ X: Y })
    const graph = await second.graph()
    await first.run()
    first.free()
    for (const call of [
      () => first.run(),
      () => first.get('Y'),
      () => first.graph(),
      () => first.output('Y'),
    ])
      expect(await complaint(call)).toMatch(/^device\/freed-buffer/)
    expect([...(await Y.download()).values]).toEqual([0, 5])
    graph.launch()
    await graph.finish()
    expect([...(await second.get('Y')).values!]).toEqual([0, 5])
    const third = await relu.bind({ X: Y })
    second.free()
    expect(Y.freed).toBe(false)
    third.free()
    expect(Y.freed).toBe(true)
    expect(await complaint(() => relu.bind({ X: Y }))).toContain('Y of relu has been freed')
  })
})

describe('rejected', () => {
  let device: Device
  let relu: Built
  let first: Binding
  let Y: ResidentDense
  const compile = (name: string): Promise<Built> => program.kernel(name).build(device)
  beforeAll(async () => {
    device = await devices.cpu()
    relu = await compile('relu')
    first = await relu.bind({ X: dense([2, 3], Float32Array.of(1, -2, 3, -4, 5, -6)) })
    Y = first.output('Y')
  })

  test('outputs that are not dense outputs as declared', async () => {
    const A = coords([2, 2], [[0], [1]], Float32Array.of(3))
    const counts = await (await compile('counts')).bind({ A, t: Float32Array.of(1, 2) })
    expect(await complaint(() => counts.output('D'))).toContain('run/resident: D of counts cannot stay')
    expect(await complaint(() => counts.output('A'))).toContain('it is an input')
    expect(await complaint(() => counts.output('Q'))).toContain('api/unknown-buffer')
    expect([counts.output('t').shape, counts.output('c').dtype]).toEqual([[2], 'i32'])
    const text = await complaint(async () => {
      const k = await compile('many')
      return k.bind({ a: counts.output('c'), b: [1, 2], c: [1, 2] })
    })
    expect(text).toContain('convert/dtype: a of kernel many is f32, and is bound to c of counts')
    // What a kernel changes is read where it is.
    const many = await (await compile('many')).bind({
      a: counts.output('t'),
      b: counts.output('t'),
      c: [1, 2],
    })
    await counts.run()
    await many.run()
    expect([...(await many.get('y')).values!]).toEqual([9, 6])
  })

  test('bindings with another shape, role, structure, format or device', async () => {
    const shape = await complaint(() => relu.bind({ X: Y, m: 3 }))
    expect(shape).toMatch(/bind\/(size-mismatch|shape).*X \(Y of relu, resident\)/)
    const gemm = await compile('gemm')
    const tensors = { A: Y, B: dense([2, 2], new Float32Array(4)) }
    expect(await complaint(() => gemm.bind({ ...tensors, alpha: 1 }))).toContain('A (Y of relu, resident)')
    const counts = await compile('counts')
    expect(await complaint(() => counts.bind({ A: Y, t: [0, 0] }))).toContain(
      'A of kernel counts is sparse, in a format',
    )
    const line = await program.kernel('many').build(device)
    const one = await line.bind({ a: [1, 2], b: [1, 2], c: [1, 2] })
    const A = coords([2, 2], [[0], [1]], Float32Array.of(3))
    expect(await complaint(() => counts.bind({ A, t: one.output('y') }))).toContain(
      't of kernel counts is written by it, and is bound to y of many',
    )
    const blocked = await program.kernel('many').schedule('blocked', 2).build(device)
    expect(await complaint(() => blocked.bind({ a: one.output('y'), b: [1, 2], c: [1, 2] }))).toContain(
      'a of kernel many is sparse, in a format',
    )
    const other = await program.kernel('relu').build(await devices.cpu())
    expect(await complaint(() => other.bind({ X: Y }))).toContain('run/other-device')
    expect(await complaint(() => Y.values)).toContain('run/resident: the values of Y of relu')
  })

  test('writing a bound output, and an array that shares its buffer', async () => {
    const second = await relu.bind({ X: Y })
    expect(await complaint(() => second.set('X', new Float32Array(6)))).toContain(
      'its memory is that of Y of relu',
    )
    const few = new Proxy(device, {
      get(target, key) {
        if (key === 'limits') return { ...target.limits, maxBuffersPerLaunch: 2 }
        const value: unknown = Reflect.get(target, key, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const many = await program.kernel('many').build(few, { auto: false })
    const plain = { a: [1, 2], b: [1, 2], c: [1, 2] }
    const one = await many.bind(plain)
    expect(await complaint(() => many.bind({ ...plain, b: one.output('y') }))).toContain(
      'b of kernel many shares a buffer with a, c',
    )
  })

  test('an output can be bound next to tensors that are resident in formats', async () => {
    const k = await program.kernel('spmm').as('A', 'csr').build(device, { auto: false })
    const A = coords(
      [2, 2],
      [
        [0, 1],
        [1, 0],
      ],
      Float32Array.of(2, 3),
    )
    const parts = await convertForKernel(k, 'A', await upload(device, A))
    const p = await bindResident(k, { A: parts, B: Y })
    await first.run()
    await p.run()
    expect([...(await p.get('C')).values!]).toEqual([0, 10, 0, 3, 0, 9])
    expect((await p.verify()).problems).toEqual([])
    p.free()
    expect(Y.freed).toBe(false)
    parts.free()
  })

  test('padding of formats has no effect on a bound output, and workspaces have no limit on it', async () => {
    const kernel = program.kernel('spmm')
    const A = coords(
      [2, 2],
      [
        [0, 1],
        [1, 0],
      ],
      Float32Array.of(2, 3),
    )
    const data = new Workspace(device, kernel, { A, B: Y }, { limitExpansion: true })
    const padded = await kernel.as('A', 'ell_at', 0, 2).build(device, { auto: false })
    await first.run()
    for (const p of [await data.bind(padded), await padded.bind({ A, B: Y })]) {
      await p.run()
      expect([...(await p.get('C')).values!]).toEqual([0, 10, 0, 3, 0, 9])
      expect((await p.explain({ time: false })).launches.length).toBeGreaterThan(0)
      p.free()
    }
  })

  test('outputs shared by kernels of a workspace can be read by other kernels', async () => {
    const data = new Workspace(device, program.kernel('relu'), { X: Y }, { shareOutputs: true })
    const p = await data.bind(await program.kernel('relu').build(device, { auto: false }))
    await first.run()
    await p.run()
    expect([...(await p.get('Y')).values!]).toEqual([1, 0, 3, 0, 5, 0])
    expect((await p.verify()).problems).toEqual([])
    expect(await complaint(() => data.verify(p))).toContain('run/resident: the values of Y of relu')
    expect(await complaint(() => p.output('Y'))).toContain('run/shared: the memory of Y')
    p.free()
    const own = new Workspace(device, program.kernel('relu'), { X: Y })
    const q = await own.bind(await program.kernel('relu').build(device, { auto: false }))
    expect(q.output('Y').shape).toEqual([2, 3])
    q.free()
  })
})

test('merged call queues have one order, with calls in flight too', async () => {
  const [a, b, c] = [new Turns(), new Turns(), new Turns()]
  const log: string[] = []
  const work = (name: string) => async (): Promise<void> => {
    await new Promise((done) => setTimeout(done, 1))
    log.push(name)
  }
  const all = [a.take(work('a1')), a.take(work('a2')), b.take(work('b1'))]
  a.join(b)
  all.push(b.take(work('b2')), a.take(work('a3')))
  c.join(b)
  b.join(a)
  all.push(c.take(work('c1')), a.take(work('a4')), b.take(work('b3')))
  await Promise.all(all)
  expect(log.slice(-5)).toEqual(['b2', 'a3', 'c1', 'a4', 'b3'])
  await c.take(work('c2'))
  expect(log.at(-1)).toBe('c2')
})

test('a queue that leaves no longer orders the queues that it connected', async () => {
  const [a, b, c] = [new Turns(), new Turns(), new Turns()]
  const log: string[] = []
  const gates: (() => void)[] = []
  const work = (name: string) => () =>
    new Promise<void>((open) =>
      gates.push(() => {
        log.push(name)
        open()
      }),
    )
  b.join(a)
  c.join(b)
  const first = a.take(work('a1'))
  const after = c.take(work('c1'))
  expect(gates).toHaveLength(1)
  b.leave()
  // Calls made before stay in order; later calls of a and c are independent.
  const [onA, onC] = [a.take(work('a2')), c.take(work('c2'))]
  gates[0]!()
  await first
  await new Promise((done) => setTimeout(done))
  expect(gates).toHaveLength(2)
  gates[1]!()
  await after
  await new Promise((done) => setTimeout(done))
  expect(gates).toHaveLength(4)
  gates[2]!()
  gates[3]!()
  await Promise.all([onA, onC])
  expect(log.slice(0, 2)).toEqual(['a1', 'c1'])
  void a.take(work('a3'))
  void c.take(work('c3'))
  expect(gates).toHaveLength(6)
})

test('on CUDA the consumer is launched with the address of the output, also within a graph', async () => {
  const { device, driver } = fakeDevice()
  const k = program.kernel('relu').parallel()
  const entry = k.emit('cuda')[0]!.entries[0]!
  const seen: bigint[][] = []
  driver.kernels.set(entry.name, ({ slot }) => {
    const at = (name: string): bigint =>
      slot(entry.args.findIndex((a) => a.name === name)).getBigUint64(0, true)
    seen.push([at('X'), at('Y')])
    return undefined
  })
  const compiled = await k.build(device)
  const first = await compiled.bind({ X: dense([2, 2], new Float32Array(4)) })
  const second = await compiled.bind({ X: first.output('Y') })
  await first.run()
  await second.run()
  const graph = await device.graph([...first.commands, ...second.commands])
  graph.launch()
  await device.finish()
  expect(seen).toHaveLength(4)
  const [[, Y], [X]] = seen as [bigint[], bigint[]]
  expect([X, seen[2]![1], seen[3]![0]]).toEqual([Y, Y, Y])
  first.free()
  expect(driver.memory.has(Y!)).toBe(true)
  second.free()
  expect(driver.memory.has(Y!)).toBe(false)
})
