import { expect, test } from 'vitest'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { assertCompared, Skipped } from '../support/compared.ts'
import { joinedNests, joinedParts } from '../support/join-gen.ts'
import { type Made, made } from '../support/legal-steps.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { numbers, parameters, runs } from './property-cases.ts'

const told = (e: unknown, ...what: unknown[]): unknown =>
  e instanceof Skipped
    ? e
    : new Error(
        `${e instanceof Error ? e.stack : e}\n${what
          .flat()
          .map((x) => (typeof x === 'string' ? x : JSON.stringify(x)))
          .join('\n')}`,
      )

const isJoined = (m: Made): boolean => m.steps.some((s) => s.startsWith('join'))

const WHAT = [
  // Most of the first are joined.
  ['parts combine into rows', joinedParts, 20],
  ['nests meet in buffers', joinedNests, 30],
] as const

test.each(WHAT)(
  '%s, at every stage and on the cpu',
  async (_, make, usual) => {
    const seen = { joined: 0, cached: 0, met: 0 }
    await assertCompared(
      numbers,
      async (choices) => {
        const s = make(new Choices(choices))
        const m = made(s)
        if (m.refused.includes('schedule/order-matters')) seen.met++
        if (!isJoined(m)) throw new Skipped('not joined')
        seen.joined++
        if (m.steps.some((x) => x.startsWith('cache_write'))) seen.cached++
        await agreeOnAll(m.compilation, s.inputs).catch((e) => {
          throw told(e, s.text, m.steps, print2(m.compilation.loops), s.inputs)
        })
      },
      parameters(usual),
    )
    if (runs(usual) >= usual) {
      expect(seen.joined).toBeGreaterThan(usual / 3)
      expect(seen.cached).toBeGreaterThan(usual / 100)
      if (make === joinedNests) expect(seen.met).toBeGreaterThan(usual / 50)
    }
  },
  3_600_000,
)

test.each(WHAT)(
  '%s, on webgpu',
  async (_, make) => {
    const device = await createNodeWebGpu()
    await assertCompared(
      numbers,
      async (choices) => {
        const s = make(new Choices(choices))
        const m = made(s)
        if (!isJoined(m)) throw new Skipped('not joined')
        const c = m.compilation
        const bound = bindInputs(c.kernel, s.inputs)
        const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
        await agreeOnDevice(device, c, bound, expected).catch((e) => {
          throw told(e, s.text, m.steps, s.inputs)
        })
      },
      parameters(5),
    )
    await device.dispose()
  },
  3_600_000,
)
