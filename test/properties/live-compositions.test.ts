/** Formats of several parts whose structure is found in each run: results are the reference's, lists and values those of the host. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import { quantity } from '../../src/ast/print/quantity.ts'
import type { RuntimeLists } from '../../src/ir/coordinates/runtime-lists.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import {
  compiled,
  KERNELS,
  MASKED,
  merged,
  PLAIN,
  PRODUCTS,
  property,
  scheduled,
  TEXTS,
  waysOf,
} from './composed-gen.ts'
import { LIVE } from './live-gen.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

test(
  'results equal the reference, at every stage and on the cpu',
  () => property(10, (s, c) => agreeOnAll(compiled(s, c.pick(waysOf(s))), s.inputs)),
  3_600_000,
)

test(
  'the same holds on WebGPU',
  () =>
    property(2, async (s, choices) => {
      const isProduct = PRODUCTS.includes(s.kernel)
      const ways = isProduct ? [`live ${merged(s, 'atomic')}`, ...waysOf(s)] : waysOf(s)
      const c = compiled(s, choices.pick(ways))
      const bound = bindInputs(c.kernel, s.inputs)
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      await agreeOnDevice(webgpu, c, bound, expected)
    }),
  3_600_000,
)

test(
  'each part has a separate capacity: an exact one suffices, and a smaller one is named',
  () =>
    property(8, async (s, choices) => {
      const c = compiled(s, 'live in place')
      const bound = bindInputs(c.kernel, s.inputs)
      const memory = runLoops(c.loops, bound, 'forward')
      const [{ parts }] = c.kernel.runtimeLists as [RuntimeLists]
      const needed = parts.map(({ counts, lists, width }) => {
        const found = Array.from(memory.get(counts)!, Number).slice(0, Number(evaluate(lists, bound.params)))
        return Math.ceil(Math.max(0, ...found) / width)
      })
      const enough = (rooms: readonly number[]) => `live in place capacity (${rooms.join(', ')})`
      await agreeOnAll(compiled(s, enough(needed)), s.inputs)
      const wanting = choices.below(parts.length)
      if (needed[wanting] === 0) return
      const rooms = needed.map((n, k) => (k === wanting ? n - 1 : n))
      const tight = await scheduled(s, enough(rooms)).build(createCpuDevice())
      const prepared = await tight.bind(s.inputs.tensors!)
      const { instance, axis } = parts[wanting]!
      await expect(prepared.run()).rejects.toThrow(
        `product has ${quantity(needed[wanting]!, 'position')} of ${axis} (part ${instance.text} of A), and the capacity is ${rooms[wanting]} `,
      )
      prepared.free()
    }),
  3_600_000,
)

test(
  'lists and values of each part equal those built on the host',
  () =>
    property(12, (s) => {
      const c = compiled(s, 'live')
      const memory = runLoops(c.loops, bindInputs(c.kernel, s.inputs), 'forward')
      const text = `${TEXTS}\n${PLAIN}\nschedule product.h { A as ${s.exact} }`
      const there = bindInputs(parseProgram(text).kernel().schedule('h').compilation.kernel, s.host).arrays
      for (const f of s.parts) {
        const list = `${LIVE[f].list}_${f}`
        const ends = Array.from(there.get(`go_${f}_indptr`) ?? there.get(`${list}_indptr`)!, Number)
        const lists = ends.length - 1
        const slices = (mine: ArrayLike<number | bigint>, each: number): number[] =>
          ends.slice(1).flatMap((end, o) => {
            const start = (o * mine.length) / lists
            return Array.from(mine, Number).slice(start, start + (end - ends[o]!) * each)
          })
        const total = Math.max(1, ends.at(-1)!)
        const theirs = there.get(list) ?? there.get(`${list}_indices`)!
        expect(slices(memory.get(`${list}_of_A`)!, theirs.length / total)).toEqual(Array.from(theirs, Number))
        const values = there.get(`A_${f}`)!
        const mine = slices(memory.get(`A_values_${f}`)!, values.length / total)
        expect(mine.map((x) => x + 0)).toEqual(Array.from(values, (x) => Number(x) + 0))
      }
    }),
  3_600_000,
)

const dense = (shape: readonly number[], ...values: readonly number[]) =>
  ({ kind: 'dense', dtype: 'f32', shape, values: Float32Array.from(values) }) as const

test('elements outside of all parts have no effect, and the first matching part stores an element', async () => {
  const none = Number.NaN
  const A = dense([2, 4], 1, none, 3, none, none, 2, none, 4)
  const M = dense([2, 4], 1, 0, 1, 0, 0, 1, 0, 1)
  const B = dense([4, 1], 1, 10, 100, 1000)
  const values = async (step: string, kernel: string, device: Device, A: ReturnType<typeof dense>) => {
    const text = `${TEXTS}\n${kernel}\nschedule product.s { A as ${step} }`
    const compiled = await parseProgram(text).kernel().schedule('s').build(device)
    const { C } = await compiled({ A, M, B })
    return Array.from((C as { values: ArrayLike<number> }).values)
  }
  const cpu = createCpuDevice()
  for (const how of ['live', 'live in place']) {
    expect(await values(`blocks(2, 2) where (held(M)) ${how}`, MASKED, cpu, A)).toEqual([301, 4020])
    const twice = `blocks(2, 2) where (held(M)) + panels(2, 2) where (held(M) or i >= 0) + strips(1, 2) ${how}`
    const whole = dense([2, 4], 1, 5, 3, 0, 0, 2, 0, 4)
    expect(await values(twice, KERNELS.plain, cpu, whole)).toEqual([351, 4020])
  }
  expect(await values('blocks(2, 2) where (held(M)) live in place', MASKED, webgpu, A)).toEqual([301, 4020])
})

test('a mask with a NaN fill value stores numbers', async () => {
  const kernel = KERNELS.plain.replace('buffer M: f32[i, q] in', 'buffer M: f32[i, q] in fill nan')
  const step = 'A as panels(1, 1) where (held(M)) + panels(1, 1) live in place capacity 1'
  const text = `${TEXTS}\n${kernel}\nschedule product.s { ${step} }`
  const compiled = await parseProgram(text).kernel().schedule('s').build(createCpuDevice())
  const M = dense([1, 2], Number.NaN, 0)
  const tensors = { A: dense([1, 2], 1, 2), M, B: dense([2, 1], 1, 10) }
  // Each list has one element; there is no room for both in one.
  expect(Array.from((await compiled(tensors)).C!.values as Float32Array)).toEqual([21])
})
