/** Schedules that are chosen by what runs find: the newest coverage decides, and nothing is compiled or allocated twice. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Binding, Built, Device, SptProgram } from '../../src/node.ts'
import { dense, devices, load } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { KERNELS, LIVE } from '../properties/live-gen.ts'
import { runs } from '../support/cases.ts'
import { asHardware } from '../support/hardware.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = asHardware(await createNodeWebGpu())
})
afterAll(() => webgpu.dispose())

interface Case {
  readonly kernel: 'left' | 'relu'
  readonly format: keyof typeof LIVE
  readonly args: readonly [number, number]
  readonly sizes: readonly [m: number, n: number, k: number]
  readonly limit: number
  /** The share of elements that may hold something, and a seed of which do; they stay for some runs. */
  readonly patterns: readonly { readonly share: number; readonly seed: number; readonly runs: number }[]
}
const FORMATS = Object.keys(LIVE) as Case['format'][]

const cases = (most: number, formats: readonly Case['format'][]): fc.Arbitrary<Case> =>
  fc.record({
    kernel: fc.constantFrom('left', 'relu'),
    format: fc.constantFrom(...formats),
    args: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 3 })),
    sizes: fc.tuple(
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 3 }),
      // Marks of more than one chunk of words, too.
      fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 9 }) }, fc.constant(1057)),
    ),
    limit: fc.constantFrom(0.25, 0.5, 0.9),
    patterns: fc.array(
      fc.record({
        share: fc.constantFrom(0, 0.1, 0.4, 1),
        seed: fc.nat(999),
        runs: fc.integer({ min: 1, max: 20 }),
      }),
      { minLength: 1, maxLength: most },
    ),
  })

const textOf = ({ kernel, format, args, limit }: Case): string => `${LIVE[format].text}
${KERNELS[kernel]}
schedule product.live { A as ${format}(${args}) live in place }
schedule product.plain { split mul.j by 2 }
schedule product.auto(a = ${args[0]}) choose {
  when (fill_ratio(A, ${format}(a, ${args[1]})) < ${limit}) live
  otherwise plain
}`

/** Integers; a rectified matrix is negative where it is to hold nothing. */
function pattern(size: number, share: number, seed: number, nothing: number): Float32Array {
  let state = seed * 7919 + 1
  return Float32Array.from({ length: size }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32 < share ? (state % 5) + 1 : nothing
  })
}

/** Allocations and compilations so far. */
function counted(device: Device): { readonly device: Device; readonly calls: () => readonly number[] } {
  let [allocated, compiled] = [0, 0]
  const own = new Proxy(device, {
    get(of, name) {
      const value: unknown = Reflect.get(of, name, of)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (name === 'alloc') allocated++
        if (name === 'compile') compiled++
        return value.apply(of, args)
      }
    },
  })
  return { device: own, calls: () => [allocated, compiled] }
}

/** Slots that the format has on the host, for each element. */
function coverage(program: SptProgram, c: Case, values: Float32Array): number {
  const [m, , k] = c.sizes
  const { parts } = program.format(c.format, ...c.args).convert(dense([m, k], values))
  return parts.reduce((sum, p) => sum + p.tensor.values!.length, 0) / (m * k)
}

async function follows(on: Device, c: Case): Promise<void> {
  const program = await load(textOf(c))
  const { device, calls } = counted(on)
  const [m, n, k] = c.sizes
  const source = c.kernel === 'relu' ? 'X' : 'A'
  const B = dense([k, n], pattern(k * n, 1, 5, 0))
  const compiled = await program.kernel().build(device)
  const reference = await (
    await program
      .kernel()
      .schedule('plain')
      .build(await devices.cpu())
  ).bind({ [source]: dense([m, k], new Float32Array(m * k)), B })
  let prepared: Binding | undefined
  const name = `fill_ratio(A, ${c.format}(${c.args.join(', ')}))`
  const seen = new Set<string>()
  for (const { share, seed, runs: times } of c.patterns) {
    const values = pattern(m * k, share, seed, source === 'X' ? -2 : 0)
    const truth = coverage(
      program,
      c,
      values.map((x) => Math.max(x, 0)),
    )
    if (prepared) await prepared.set(source, values)
    else prepared = await compiled.bind({ [source]: dense([m, k], values), B })
    await reference.set(source, values)
    await reference.run()
    const expected = await reference.get('C')
    const before = calls()
    for (let run = 0; run < Math.min(times, 3); run++) {
      await prepared.run()
      await prepared.awaitMeasurements()
      expect((await prepared.get('C')).values).toEqual(expected.values)
      const { text, fillRatios, hostSelection } = prepared.selection!
      expect([text, hostSelection]).toEqual([truth < c.limit ? 'live' : 'plain', undefined])
      expect(fillRatios[name]).toMatchObject({ source: 'last run' })
      expect(fillRatios[name]!.measured! * m * k).toBeCloseTo(truth * m * k, 6)
      seen.add(text)
      expect(calls()).toEqual(before)
    }
  }
  expect((await prepared!.verify()).problems).toEqual([])
  prepared!.free()
  reference.free()
}

test('the newest fill ratio selects the schedule, and equals that of the host', async () => {
  const cpu = await devices.cpu()
  await fc.assert(
    fc.asyncProperty(cases(12, FORMATS), (c) => follows(cpu, c)),
    { numRuns: runs(15) },
  )
}, 3_600_000)

test('the same holds on WebGPU', async () => {
  await fc.assert(
    fc.asyncProperty(cases(4, FORMATS), (c) => follows(webgpu, c)),
    { numRuns: runs(2) },
  )
}, 3_600_000)

/** Rules against each other: each run goes where the shares lead that were found last, of formats that did not run by samples. */
async function settles(on: Device, { sizes: [m, n, k], limit, patterns }: Case): Promise<void> {
  const text = `${LIVE.panels.text}
${LIVE.blocks.text}
${KERNELS.left}
schedule product.rows { A as panels(2, 1) live in place }
schedule product.tiles { A as blocks(2, 2) live in place }
schedule product.plain { split mul.j by 2 }
schedule product.auto choose {
  when (fill_ratio(A, blocks(2, 2)) < ${limit} and fill_ratio(A, blocks(2, 2)) < 1.2 * fill_ratio(A, panels(2, 1))) tiles
  when (fill_ratio(A, panels(2, 1)) < ${limit}) rows
  otherwise plain
}`
  const program = await load(text)
  const B = dense([k, n], pattern(k * n, 1, 5, 0))
  let prepared: Binding | undefined
  for (const { share, seed } of patterns) {
    const A = dense([m, k], pattern(m * k, share, seed, 0))
    const of = (name: string, ...args: number[]): number => {
      const { parts } = program.format(name, ...args).convert(A)
      return parts.reduce((sum, p) => sum + p.tensor.values!.length, 0) / (m * k)
    }
    const [blocks, rows] = [of('blocks', 2, 2), of('panels', 2, 1)]
    const best = blocks < limit && blocks < 1.2 * rows ? 'tiles' : rows < limit ? 'rows' : 'plain'
    if (prepared) await prepared.set('A', A.values!)
    else {
      prepared = await (await program.kernel().build(on)).bind({ A, B })
      expect(prepared.selection!.text).toBe(best)
    }
    const expected = A.values!
    await prepared.run()
    await prepared.awaitMeasurements()
    expect(prepared.selection!.text).toBe(best)
    const C = (await prepared.get('C')).values!
    for (let e = 0; e < m * n; e++) {
      let sum = 0
      for (let q = 0; q < k; q++)
        sum += Number(expected[Math.floor(e / n) * k + q]) * Number(B.values![q * n + (e % n)])
      expect(C[e]).toBe(sum)
    }
  }
  prepared?.free()
}

test('among several formats, the one with the matching fill ratio runs', async () => {
  const cpu = await devices.cpu()
  await fc.assert(
    fc.asyncProperty(cases(4, ['panels']), (c) => settles(cpu, c)),
    { numRuns: runs(5) },
  )
  await fc.assert(
    fc.asyncProperty(cases(2, ['panels']), (c) => settles(webgpu, c)),
    { numRuns: runs(1) },
  )
}, 3_600_000)

test('outputs of other kernels and tensors in formats report ratios too', async () => {
  const cpu = await devices.cpu()
  const text = (live: string, condition = 'fill_ratio(A, panels(2, 2))') => `${LIVE.panels.text}
format tiles(b) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = dense_fixed(ceildiv(j, b))
  axis ji = dense_fixed(b)
  map (i, j) -> (i, j / b, j % b)
  inverse (io, jo, ji) -> (io, jo * b + ji)
}
${KERNELS.left}
schedule product.live { A as panels(2, 2) live in place ${live} }
schedule product.plain { split mul.j by 2 }
schedule product.auto choose { when (${condition} < 0.5) live otherwise plain }
kernel rectify(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer X: f32[i, q] in
  buffer H: f32[i, q] out
  iterate all [i, q] as SS { H[i, q] = max(X[i, q], 0.0) }
}`
  for (const live of ['', 'B as tiles(2)']) {
    const program = await load(text(live))
    const X = (share: number) => pattern(48, share, 3, -1)
    const rectify = await (await program.kernel('rectify').build(cpu)).bind({ X: dense([6, 8], X(0.05)) })
    const B = dense([8, 2], pattern(16, 1, 4, 0))
    const product = await (await program.kernel('product').build(cpu)).bind({ A: rectify.output('H'), B })
    const expected = async (): Promise<readonly number[]> => {
      const H = (await rectify.get('H')).values!
      return Array.from({ length: 12 }, (_, e) => {
        let sum = 0
        for (let q = 0; q < 8; q++)
          sum += Number(H[Math.floor(e / 2) * 8 + q]) * Number(B.values![q * 2 + (e % 2)])
        return sum
      })
    }
    const chosen: (string | undefined)[] = []
    const C = product.output('C')
    for (const share of [0.05, 0.05, 1, 1, 1, 0.05, 0.05, 0.05]) {
      await rectify.set('X', X(share))
      await rectify.run()
      await product.run()
      chosen.push(product.selection?.text)
      const right = await expected()
      expect([...(await product.get('C')).values!]).toEqual(right)
      // What others are bound to is one memory, whichever schedule writes it.
      expect([...(await C.download()).values]).toEqual(right)
    }
    expect(chosen).toEqual(['live', 'live', 'plain', 'plain', 'plain', 'live', 'live', 'live'])
    // Schedules that store B differently are not in one plan, and the host selects.
    const reason = live === '' ? undefined : 'the schedules store B differently'
    expect(product.selection!.hostSelection).toBe(reason)
    product.free()
    rectify.free()
  }
  // A schedule that cannot run is an error of the build, even if these data would not select it.
  const program = await load(text('C as panels(2, 1)'))
  await expect(program.kernel('product').build(cpu)).rejects.toThrow('schedule/format-output')
})

test('`precompile` compiles the schedules that the host may select', async () => {
  const text = `${LIVE.panels.text}
${KERNELS.left}
format tiles(b) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = dense_fixed(ceildiv(j, b))
  axis ji = dense_fixed(b)
  map (i, j) -> (i, j / b, j % b)
  inverse (io, jo, ji) -> (io, jo * b + ji)
}
schedule product.live {
  A as panels(2, 2) live in place
  B as tiles(2)
}
schedule product.plain { split mul.j by 2 }
schedule product.auto choose { when (fill_ratio(A, panels(2, 2)) < 0.5) live otherwise plain }`
  const compiled = (await (await load(text)).kernel().build(await devices.cpu())) as Built
  const [A, B] = [dense([4, 4], new Float32Array(16)), dense([4, 1], new Float32Array(4).fill(1))]
  const prepared = await compiled.bind({ A, B })
  await prepared.precompile()
  expect([prepared.selection!.text, compiled.variants]).toEqual(['live', ['live', 'plain']])
  await prepared.set('A', new Float32Array(16).fill(1))
  await prepared.run()
  expect(prepared.selection!.text).toBe('plain')
  prepared.free()
})
