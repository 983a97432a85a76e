/**
 * Formats change no result: generated programs whose tensors are stored in any format or composition, under random
 * steps for each part and for all, at every stage and on the cpu.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { formatCase, type Pool, poolOf } from './formats.ts'
import { carriedOut, numbers, parameters, runs } from './law.ts'

const CASES = 100
let pool: Pool

beforeAll(async () => {
  pool = await poolOf(Number(process.env.SPT_LAW_SEED ?? 20))
})

test('every stage and the cpu agree with the reference, in every format', async () => {
  const device = createCpuDevice()
  const seen = new Map<string, number>()
  let made = 0
  let carried = 0
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = formatCase(choices, pool, 8)
      if (!k) return
      made++
      const done = await carriedOut(k, async () => {
        agreeOnStages(k.compilation, k.bound, k.expected)
        expect(await agreeOnDevice(device, k.compilation, k.bound, k.expected)).toBe(true)
      })
      if (!done) return
      carried++
      for (const u of new Set([...k.formats, ...k.scheduled.accepted])) seen.set(u, (seen.get(u) ?? 0) + 1)
    }),
    parameters(CASES),
  )
  if (process.env.SPT_LAW_SHOW) console.log(made, carried, [...seen].map((x) => x.join(' ')).join(', '))
  expect(made).toBeGreaterThan(0.35 * runs(CASES))
  expect(carried).toBeGreaterThan(0.9 * made)
  if (runs(CASES) >= CASES)
    expect(['atomic', 'combine', 'each part', 'merge parts'].filter((u) => !seen.has(u))).toEqual([])
}, 3_600_000)
