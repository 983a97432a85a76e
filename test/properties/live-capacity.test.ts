/** Room for lists that a run finds: just enough, one too little, and what is said of it. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { printedSteps } from '../../src/api/kernels/nests.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import type { Diagnostic, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { quantity } from '../../src/ast/print/quantity.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { agreeOnAll } from './agree.ts'
import { KERNELS, LIVE, live } from './live-gen.ts'
import { listedIn, SCHEDULES, scheduled, told } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

test('an exact capacity, and one that is too small', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = live(c, undefined, c.pick(['left', 'relu']))
      return told([s.text, s.sizes], async () => {
        const [m, cols, k] = s.sizes
        const bound = bindInputs(scheduled(s, 'live').kernel, s.inputs)
        const memory = runLoops(scheduled(s, 'live').loops, bound, 'forward')
        const list = memory.get(`${LIVE[s.format].list}_of_A`)!
        const counts = listedIn(memory, s.lists)
        const axis = LIVE[s.format].loops.at(-1)
        const isGrouped = axis === 'go'
        const width = isGrouped ? Number(/\(\d+, (\d+)\)/.exec(s.text.split('product.live')[1]!)![1]) : 1
        const needed = Math.max(0, ...counts.map((x) => Math.ceil(x / width)))
        const withRoom = (room: number, over: string) =>
          s.text.replaceAll('live in place', `live in place capacity ${room}${over}`)
        const name = c.pick(SCHEDULES)
        await agreeOnAll(scheduled({ text: withRoom(needed, ' + 0 * k') }, name), s.inputs)
        const enough = parseProgram(withRoom(needed, ' + 0 * k')).kernel().schedule('live')
        await agreeOnAll(enough.compilation, s.inputs)
        const stored = runLoops(enough.compilation.loops, bound, 'forward').get(
          `${LIVE[s.format].list}_of_A`,
        )!
        expect(stored.length).toBeLessThanOrEqual(list.length)
        const device = c.below(8) === 0 ? webgpu : createCpuDevice()
        for (const room of needed > 0 ? [needed, needed - 1] : [0]) {
          const tight = parseProgram(withRoom(room, '')).kernel().schedule('live')
          // Lists end where there is no more room, and none goes on in the next one.
          const mine = runLoops(tight.compilation.loops, bound, 'backward').get(
            `${LIVE[s.format].list}_of_A`,
          )!
          for (const [o, count] of counts.entries()) {
            const [a, b] = [list, mine].map((x) => Array.from(x).slice((o * x.length) / counts.length))
            const listed = Math.min(count, room * width)
            expect(b!.slice(0, listed)).toEqual(a!.slice(0, listed))
          }
          const compiled = await parseProgram(withRoom(room, '')).kernel().schedule(name).build(device)
          const prepared = await compiled.bind(s.inputs.tensors!)
          try {
            const ran = prepared.run().then(
              () => 'right',
              (e: SptError) => {
                const [{ code, message, span }] = e.diagnostics as [Diagnostic]
                return `${code}: ${message}: ${withRoom(room, '').slice(span?.start, span?.end)}`
              },
            )
            if (room < needed)
              expect(await ran).toMatch(
                new RegExp(
                  `^run/overflow: product has ${quantity(needed, 'position')} of ${axis}, and the capacity is ${room} \\(.*: A as .* capacity ${room}$`,
                ),
              )
            else expect(await ran).toBe('right')
            // What fits is there, and a run that needs less is right again.
            const nothing = { ...s.inputs.tensors![s.source]!, values: new Float32Array(m * k) }
            await prepared.set(s.source, nothing as never)
            if (m * k > 0) await prepared.run()
            const { values } = (await prepared.get('C')) as { values: ArrayLike<number> }
            if (m * k > 0)
              expect(Array.from(values, (x) => x + 0)).toEqual(Array.from({ length: m * cols }, () => 0))
          } finally {
            prepared.free()
          }
        }
      })
    }),
    parameters(5),
  )
}, 3_600_000)

test('a capacity is part of the step', () => {
  const text = `${LIVE.panels.text}\n${KERNELS.left}
schedule product.s(w = 2) { A as panels(2, w) live in place capacity min(ceildiv(k, 4), 3 * w) }`
  const kernel = parseProgram(text).kernel()
  const given = kernel.live('A', 'panels', 2, 2, { capacity: 3 })
  expect(printedSteps(given.compilation)).toEqual(['A as panels(2, 2) live in place capacity 3'])
  for (const k of [given, kernel.schedule('s')]) {
    const again = parseProgram(text)
      .kernel()
      .replay(JSON.parse(JSON.stringify(k)))
    expect(printedSteps(again.compilation)).toEqual(printedSteps(k.compilation))
    expect(again.show(1)).toBe(k.show(1))
  }
  expect(printedSteps(kernel.schedule('s').compilation)).toEqual([
    'A as panels(2, 2) live in place capacity min(ceildiv(k, 4), 6)',
  ])
})
