/** Formats whose structure is found in each run, with values of their own: results, lists and values are those of the host. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { printedSteps } from '../../src/api/kernels/nests.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { KERNELS, LIVE, type Live, live } from './live-gen.ts'
import { numbers, parameters } from './property-cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

/** As in place, but with values of their own; sometimes with room for less than there could be, or for all together. */
const own = (s: Live, room = ''): string => s.text.replaceAll(' live in place', ` live${room}`)

const scheduled = (text: string, name: string): Compilation =>
  parseProgram(text).kernel().schedule(name).compilation

const property = (usual: number, check: (s: Live, c: Choices) => Promise<void> | void) =>
  fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = live(c)
      try {
        await check(s, c)
      } catch (e) {
        throw new Error(`${e instanceof Error ? e.stack : e}\n${own(s)}\n${s.sizes}`)
      }
    }),
    parameters(usual),
  )

const ROOM = ['', ' capacity m + k', ' capacity 2 * m * k + m + k in all'] as const

test(
  'a product equals the reference, at every stage and on the cpu',
  () =>
    property(10, (s, c) => agreeOnAll(scheduled(own(s, c.pick(ROOM)), c.pick(['live', 'fused'])), s.inputs)),
  3_600_000,
)

test(
  'the same holds on WebGPU',
  () =>
    property(2, async (s, choices) => {
      const c = scheduled(own(s), choices.pick(['live', 'fused']))
      const bound = bindInputs(c.kernel, s.inputs)
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      await agreeOnDevice(webgpu, c, bound, expected)
    }),
  3_600_000,
)

test(
  'values equal those of the host at the same positions',
  () =>
    property(15, (s) => {
      const c = scheduled(own(s), 'live')
      const memory = runLoops(c.loops, bindInputs(c.kernel, s.inputs), 'forward')
      const { list } = LIVE[s.format]
      const host = bindInputs(scheduled(s.host.text, 'host').kernel, s.host.inputs).arrays
      const ends = Array.from(host.get('go_indptr') ?? host.get(`${list}_indptr`)!, Number)
      const lists = ends.length - 1
      const [theirs, mine] = [host.get('A')!, memory.get('A_values')!]
      if (lists === 0 || theirs.length === 0) return
      const outer = s.text.includes('axis p') && s.source === 'A' ? 2 : 1
      const slots = theirs.length / outer / ends.at(-1)!
      const stride = mine.length / outer / lists
      const packed = Array.from({ length: outer }, (_, p) =>
        ends.slice(1).flatMap((end, o) => {
          const start = (p * lists + o) * stride
          return Array.from(mine).slice(start, start + (end - ends[o]!) * slots)
        }),
      ).flat()
      expect(packed.map((x) => Number(x) + 0)).toEqual(Array.from(theirs, (x) => Number(x) + 0))
    }),
  3_600_000,
)

const dense = (shape: readonly number[], ...values: readonly number[]) =>
  ({ kind: 'dense', dtype: 'f32', shape, values: Float32Array.from(values) }) as const

test('NaN is copied, −0.0 is not listed, and skipped elements may have any value', async () => {
  for (const format of ['panels', 'strips', 'blocks'] as const) {
    const text = `${LIVE[format].text}\n${KERNELS.left}\nschedule product.s { A as ${format}(4, 1) live }`
    const A = dense([2, 4], 1, -0, 0, 0, 0, -0, 0, Number.NaN)
    const B = dense([4, 1], 5, Number.NaN, Number.POSITIVE_INFINITY, 2)
    for (const device of format === 'strips' ? [createCpuDevice(), webgpu] : [createCpuDevice()]) {
      const { C } = await (await parseProgram(text).kernel().schedule('s').build(device))({ A, B })
      expect(Array.from((C as { values: ArrayLike<number> }).values)).toEqual([5, Number.NaN])
    }
  }
})

/** Two iterations at the tensor's elements; one reads it at other coordinates, too. */
const TWICE = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, q] in
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  buffer D: f32[i] out
  iterate one [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
  iterate two [i, q] as SR { if (A[i, q] != 0) { D[i] max= A[i, q] + A[q, i] } }
}`

test('the tensor is read for marking, for copying, and at other coordinates', async () => {
  const kernel = parseProgram(`${LIVE.panels.text}\n${TWICE}`).kernel()
  const k = kernel.live('A', 'panels', 2, 2, { inPlace: false })
  const readers = k
    .show(1)
    .split('\n')
    .filter((line) => /[^_]\bA\[/.test(line))
    .map((line) => line.trim())
  expect(readers).toHaveLength(3)
  expect(readers[1]).toMatch(/^A_values\[io, go, ii, ji\] = select\(/)
  expect(readers[2]).toMatch(/ A\[jo_of_A\[io, go, ji\], io \* 2 \+ ii\]/)
  const [A, B] = [dense([3, 3], 1, 0, 2, 0, 0, 3, -4, 5, 0), dense([3, 2], 1, 2, 3, 4, 5, 6)]
  await agreeOnAll(k.compilation, { tensors: { A, B } })
})

test('it is part of the step, in program text and JSON, and optional', () => {
  const text = `${LIVE.panels.text}\n${KERNELS.left}
schedule product.s { A as panels(2, 2) live capacity k }`
  const kernel = parseProgram(text).kernel()
  const options = { capacity: 3, for: [], inPlace: false }
  for (const [k, printed] of [
    [kernel.schedule('s'), 'A as panels(2, 2) live capacity k'],
    [kernel.live('A', 'panels', 2, 2, options), 'A as panels(2, 2) live capacity 3'],
    [kernel.live('A', 'panels', 2, 2, { inPlace: true }), 'A as panels(2, 2) live in place'],
    [kernel.live('A', 'panels', 2, 2), 'A as panels(2, 2) live in place'],
  ] as const) {
    expect(printedSteps(k.compilation)).toEqual([printed])
    const again = parseProgram(text)
      .kernel()
      .replay(JSON.parse(JSON.stringify(k)))
    expect(printedSteps(again.compilation)).toEqual([printed])
    expect(again.show(1)).toBe(k.show(1))
  }
})

/** Copies of values stand in blocks of threads: no nest is left to one thread. */
test.each(Object.keys(LIVE) as (keyof typeof LIVE)[])('%s is copied by threads', (format) => {
  for (const kernel of ['left', 'two'] as const) {
    const text = `${LIVE[format].text}\n${KERNELS[kernel]}\nschedule product.s { A as ${format}(3, 4) live }`
    const { plan } = parseProgram(text).kernel().schedule('s').compilation.parallel()
    const blocks = plan.steps.flatMap((x) => (x.kind === 'launch' ? [x.block.reduce((a, b) => a * b)] : []))
    expect(blocks[2], text).toBeGreaterThanOrEqual(128)
  }
})

test.skipIf(noNvcc !== null)('nvcc compiles the copies', () => {
  const text = `${LIVE.panels.text}\n${KERNELS.left}\nschedule product.s { A as panels(64, 64) live }`
  const texts = parseProgram(text).kernel().schedule('s').emit('cuda')
  expect(compileCuda(texts.map((t) => t.text))).toBe('')
})
