import { afterAll, beforeAll, expect, test } from 'vitest'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { runs, scaled } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'
import { assertCompared, Skipped } from '../support/compared.ts'
import { type Made, made } from '../support/legal-steps.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { LIVE, type Live, live } from './live-gen.ts'
import { asWritten, sameLists, scheduled, told } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

/** Blocks for lists or not; rows of threads for words, chunks and sums of any length that fits, each bound or not. */
function joinedSteps(c: Choices, { format, text }: Live): readonly string[] {
  const { list, loops } = LIVE[format]
  const [outer] = loops
  const lanes = c.pick([32, 4, 16])
  const threads = c.chance(70)
  const bind = (loop: string, to: string): string[] => (threads ? [`bind ${loop} to ${to}`] : [])
  const split = (loop: string, name: string, to = 'thread.x'): string[] =>
    c.chance(75)
      ? [`split ${list}_${loop} by ${lanes} -> (${name}o, ${name}l)`, ...bind(`${name}l`, to)]
      : bind(`${list}_${loop}`, to)
  const some = (step: string): string[] => (c.chance(60) ? [step] : [])
  const isRows = c.chance(60)
  const chunk = isRows ? 'cr' : `${list}_chunk`
  return [
    /A as .*place/.exec(text)![0],
    `join (mark_A, place_A) at mark_A.${outer}`,
    ...bind(`joined.${outer}`, 'block.x'),
    ...split('word', 'w'),
    ...(isRows ? [`split ${list}_chunk by 2 -> (co, cr)`, ...bind('cr', 'thread.y')] : []),
    ...(isRows ? ['split wo by 2 -> (wc, wr)', ...bind('wr', 'thread.y')] : []),
    ...split('any', 'a'),
    ...some(`cache_write counts_A at ${chunk} in register`),
    ...split('earlier', 'e'),
    ...some(`cache_write bases_A at ${chunk} in register`),
    ...bind(`size_A.${list}_part`, 'thread.x'),
    ...bind(`rank_A.${list}_part`, 'thread.x'),
    ...some(`cache_write starts_A at rank_A.${list}_part in register`),
    ...some(`unroll list_A.${list}_bit by 4`),
    ...some(`unroll ${list}_other`),
  ]
}

const isJoined = (m: Made): boolean => m.steps.some((x) => x.startsWith('join'))

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

test('lists, counts and products equal those of the host', async () => {
  const seen = { joined: 0, threads: 0, cached: 0 }
  let gpu = 0
  await assertCompared(
    numbers,
    (n) => {
      const c = new Choices(n)
      const s = live(c, undefined, c.pick(['left', 'right', 'relu']))
      const m = made({ text: s.text, steps: joinedSteps(c, s) }, 'product')
      return told([s.text, ...m.steps, s.sizes], async () => {
        // What the nests write elsewhere may be in the way.
        if (!isJoined(m)) throw new Skipped('not joined')
        seen.joined++
        const isBound = m.steps.some((x) => x.includes('thread'))
        if (isBound) seen.threads++
        if (m.steps.some((x) => x.startsWith('cache_write'))) seen.cached++
        const { compilation } = m
        await agreeOnAll(compilation, s.inputs)
        const memory = runLoops(compilation.loops, bindInputs(compilation.kernel, s.inputs), 'backward')
        sameLists(s.format, memory, bindInputs(scheduled(s.host, 'host').kernel, s.host.inputs).arrays)
        if (!isBound || gpu++ >= 2) return
        const { bound, expected } = asWritten(compilation, s.inputs)
        await agreeOnDevice(webgpu, compilation, bound, expected)
      })
    },
    parameters(14),
  )
  if (runs(14) < 14) return
  expect(seen.joined).toBeGreaterThan(scaled(7))
  expect(seen.threads).toBeGreaterThan(scaled(2))
  expect(seen.cached).toBeGreaterThan(scaled(2))
}, 3_600_000)
