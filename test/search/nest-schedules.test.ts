/** Schedules of kernels with several loop nests: each nest on its own, on every device, and equal to the reference. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Device, devices, type Kernel, load } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { sketches } from '../../src/search/spaces/sketches.ts'
import { runs } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'

const DEVICES = ['cpu', 'webgpu', 'cuda'] as const

let gpu: Device
beforeAll(async () => {
  gpu = await createNodeWebGpu()
})
afterAll(async () => {
  await gpu.dispose()
})

const plainIn = (kernel: Kernel, device: (typeof DEVICES)[number], sizes: Readonly<Record<string, number>>) =>
  kernel.inspect.scheduleCandidates(device, sizes)[0]?.plain

const numbered = (count: number, text: (k: number) => string): string =>
  Array.from({ length: count }, (_, k) => text(k)).join('\n')

/** Updates in place, whose epilogue is illegal because another nest reads the old values in between. */
const training = (count: number): string => `kernel step(n: size) {
  axis i = dense_fixed(n)
  axis p = dense_fixed(n)
  axis q = dense_fixed(n)
  buffer X: f32[i, p] in
  buffer G: f32[i, q] in
${numbered(count, (k) => `  buffer W${k}: f32[p, q] inout\n  buffer dW${k}: f32[p, q] local\n  buffer T${k}: f32[i, p] out`)}
${numbered(count, (k) => `  iterate grad${k} [p, q, i] as SSR { dW${k}[p, q] += X[i, p] * G[i, q] }\n  iterate back${k} [i, p, q] as SSR { T${k}[i, p] += G[i, q] * W${k}[p, q] }`)}
${numbered(count, (k) => `  iterate update${k} [p, q] as SS { W${k}[p, q] += -0.1 * dW${k}[p, q] }`)}
}`

/** Products that read the digits of one dimension, whose copies to shared memory are illegal for any sizes. */
const digits = (count: number): string => `kernel scores(heads: size, hd: size, d: size, n: size) {
  axis e = dense_fixed(heads)
  axis c = dense_fixed(hd)
  axis m = dense_fixed(d)
  axis t = dense_fixed(n)
  axis s = dense_fixed(n)
  buffer Q: f32[m, t] in
  buffer K: f32[m, s] in
${numbered(count, (k) => `  buffer S${k}: f32[e, t, s] out`)}
${numbered(count, (k) => `  iterate score${k} [e, t, s, c] as SSSR { S${k}[e, t, s] += Q[e * hd + c, t] * K[e * hd + c, s] }`)}
}`

test('an illegal alternative of a nest does not affect other nests', async () => {
  for (const count of [1, 3]) {
    const step = (await load(training(count))).kernel()
    const scores = (await load(digits(count))).kernel()
    for (const device of DEVICES) {
      expect(plainIn(step, device, { n: 256 })).toEqual([])
      expect(step.autoSchedule(device, { n: 256 }).trace.length).toBeGreaterThanOrEqual(12 * count)
      const sizes = { heads: 4, hd: 64, d: 256, n: 512 }
      expect(plainIn(scores, device, sizes)).toEqual([])
      expect(scores.autoSchedule(device, sizes).trace.length).toBeGreaterThanOrEqual(6 * count)
    }
  }
})

test('the number of nests is not limited, and identical nests share their decisions', async () => {
  const decisions = async (count: number): Promise<readonly number[]> => {
    const kernel = (await load(digits(count))).kernel()
    return DEVICES.map((device) => {
      expect(kernel.autoSchedule(device).trace.length).toBeGreaterThanOrEqual(count)
      return Object.keys(sketches(kernel, { device }).defaultPoint).length
    })
  }
  // Two nests have a further decision: whether they share a launch.
  expect(await decisions(70)).toEqual(await decisions(2))
})

test('digits whose strides are sizes cover an axis, so that no fill is needed', async () => {
  const filled = async (extent: string): Promise<boolean> => {
    const kernel = await load(`kernel joined(heads: size, hd: size, d: size, n: size) {
  axis e = dense_fixed(heads)
  axis c = dense_fixed(hd)
  axis m = dense_fixed(${extent})
  axis t = dense_fixed(n)
  buffer V: f32[e, c, t] in
  buffer O: f32[m] out
  iterate mix [e, c, t] as SSR { O[e * hd + c] += V[e, c, t] }
}`)
    return kernel.kernel().compilation.loops.body.some((s) => s.kind === 'fill')
  }
  expect(await filled('heads * hd')).toBe(false)
  expect(await filled('d')).toBe(true)
})

const FARTHEST = `monoid farthest(v: f32, at: i32) {
  identity (-inf, -1)
  combine (a, b) = (max(a.v, b.v), select(b.v > a.v, b.at, a.at))
}
`
test('a nest without a legal schedule is named with the reason', async () => {
  const kernel = (
    await load(`${FARTHEST}kernel peaks(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer v: f32[jd] out
  buffer at: i32[jd] out
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
  iterate peak [i, j] as RR { (v[j], at[j]) farthest= (A[i, j], i) }
}`)
  ).kernel()
  expect(plainIn(kernel, 'cpu', {})).toEqual([])
  expect(plainIn(kernel, 'webgpu', {})).toEqual([{ nest: 'peak', reason: 'no sketch fits its loops' }])
  const built = await kernel.build(gpu, { sizes: { m: 8, n: 8 } })
  expect(built.selection?.rejectedBranches).toEqual(['peak has no schedule: no sketch fits its loops'])
})

/** A program of several nests: products, row sums, elementwise steps and updates, each of what was computed before. */
function several(c: Choices): string {
  const buffers = ['X']
  const locals: string[] = []
  const nests: string[] = []
  const count = 2 + c.below(5)
  for (let k = 0; k < count; k++) {
    const [a, b] = [c.pick(buffers), c.pick(buffers)]
    const name = `T${k}`
    const kind = c.below(6)
    const row = `r${k}`
    if (kind === 0)
      nests.push(`iterate product${k} [i, f, j] as SSR { ${name}[i, f] += A[i, j] * ${a}[j, f] }`)
    else if (kind === 1)
      nests.push(`iterate dense${k} [i, f, g] as SSR { ${name}[i, f] += ${a}[i, g] * W[g, f] }`)
    else if (kind === 2) {
      locals.push(`buffer ${row}: f32[i] local`)
      nests.push(
        `iterate sum${k} [i, f] as SR { ${row}[i] += ${a}[i, f] }`,
        `iterate scale${k} [i, f] as SS { ${name}[i, f] = ${b}[i, f] - 0.125 * ${row}[i] }`,
      )
    } else if (kind === 3)
      nests.push(`iterate map${k} [i, f] as SS { ${name}[i, f] = max(${a}[i, f], 0.5 * ${b}[i, f]) }`)
    else if (kind === 4)
      nests.push(
        `iterate copy${k} [i, f] as SS { ${name}[i, f] = ${a}[i, f] }`,
        `iterate update${k} [i, f] as SS { ${name}[i, f] += 0.25 * ${b}[i, f] }`,
      )
    else {
      locals.push(`buffer ${row}: f32[i] local`)
      nests.push(
        `iterate peak${k} [i, f] as SR { ${row}[i] max= ${a}[i, f] }`,
        `iterate mix${k} [i, f, j] as SSR { ${name}[i, f] += A[i, j] * (${b}[j, f] - ${row}[i]) }`,
      )
    }
    locals.push(`buffer ${name}: f32[i, f] ${k === count - 1 || c.chance(25) ? 'out' : 'local'}`)
    buffers.push(name)
  }
  return `kernel several(n: size, d: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  axis g = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer X: f32[i, f] in
  buffer W: f32[g, f] in
  ${[...locals, ...nests].join('\n  ')}
}`
}

test('automatic schedules of several nests agree with the reference on every device', async () => {
  const cpu = await devices.cpu()
  const cases = fc.tuple(
    fc.array(fc.nat(2 ** 31 - 1), { minLength: 40, maxLength: 40 }),
    fc.constantFrom(1, 4, 7, 32),
    fc.constantFrom(1, 8, 13),
  )
  await fc.assert(
    fc.asyncProperty(cases, async ([numbers, d, n]) => {
      const kernel = (await load(several(new Choices(numbers)))).kernel()
      kernel.autoSchedule('cuda', { n, d }).emit('cuda')
      for (const device of [cpu, gpu]) {
        expect(plainIn(kernel, device.kind, { n, d })).toEqual([])
        const built = await kernel.build(device, { sizes: { n, d } })
        const binding = await built.bind({ n, d }, { seed: 3 })
        const { ok, problems } = await binding.verify()
        expect(problems.slice(0, 1)).toEqual([])
        expect(ok).toBe(true)
        binding.free()
        built.release()
      }
    }),
    { numRuns: runs(6) },
  )
})

test('steps that are repeated for identical nests are those that are applied one by one', async () => {
  const cases = fc.tuple(
    fc.array(fc.nat(2 ** 31 - 1), { minLength: 40, maxLength: 40 }),
    fc.integer({ min: 2, max: 3 }),
    fc.constantFrom(8, 64),
  )
  await fc.assert(
    fc.asyncProperty(cases, async ([numbers, count, n]) => {
      const text = `${several(new Choices(numbers))}
kernel model(n: size, d: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  axis g = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer H: f32[i, f] inout
  repeat ${count} as l {
    buffer W: f32[g, f] in
    call H = several(A, H, W)
  }
}`
      const kernel = (await load(text)).kernel('model')
      for (const device of DEVICES) {
        const scheduled = kernel.autoSchedule(device, { n, d: 64 })
        const again = kernel.replay(scheduled.toJSON())
        expect(scheduled.show(2)).toBe(again.show(2))
        expect(scheduled.trace).toEqual(again.trace)
        expect(scheduled.undo().show(2)).toBe(again.undo().show(2))
      }
    }),
    { numRuns: runs(4) },
  )
})

test('independent identical products are one launch, whose branches share arrays in WGSL', async () => {
  const kernel = (
    await load(`kernel projections(n: size, d: size) {
  axis t = dense_fixed(n)
  axis k = dense_fixed(d)
  axis o = dense_fixed(d)
  buffer X: f32[t, k] in
${numbered(3, (k) => `  buffer W${k}: f32[k, o] in\n  buffer Y${k}: f32[t, o] out`)}
${numbered(3, (k) => `  iterate product${k} [t, o, k] as SSR { Y${k}[t, o] += X[t, k] * W${k}[k, o] }`)}
}`)
  ).kernel()
  const sizes = { n: 256, d: 128 }
  const [module, ...others] = kernel.autoSchedule('webgpu', sizes).emit('wgsl')
  expect(others).toEqual([])
  expect(module!.text.match(/var<workgroup>/g)).toHaveLength(2)
  expect(kernel.autoSchedule('cuda', sizes).emit('cuda')[0]!.entries).toHaveLength(1)
  const built = await kernel.build(gpu, { sizes })
  const binding = await built.bind(sizes, { seed: 2 })
  const { ok, problems } = await binding.verify()
  expect(problems).toEqual([])
  expect(ok).toBe(true)
  binding.free()
  built.release()
})
