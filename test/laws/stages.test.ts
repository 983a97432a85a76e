/**
 * The law that everything else serves: whatever the program, the data and the legal schedule, every stage and
 * the emitted JavaScript compute what the reference computes, to the last bit.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { carriedOut, caseOf, numbers, parameters, runs } from './law.ts'

const CASES = 500

/** What has to occur in cases that were carried out, at the usual number of cases and more. */
const COVERED = [
  // axes
  ...[
    'dense_fixed',
    'dense_variable',
    'sparse_fixed',
    'sparse_variable',
    'sparse root',
    'depth 3',
    'dense child',
    'bitmap',
    'pieces',
  ],
  ...['fused', 'attached', 'gathered', 'unordered', 'nonunique', 'sparse output', 'join'],
  // types and reducers
  ...['f64', 'f32', 'f16', 'bf16', 'i32', 'u32', 'i8', 'u8', 'bool'],
  ...['+', '*', 'min', 'max', 'and', 'or', 'pair', 'accumulate', 'fill', 'scalar', 'local', 'inout'],
  // statements and expressions
  ...['assign', 'let', 'if', 'else', 'nested', 'map', 'rows', 'select', 'comparison'],
  ...['affine', 'div-mod', 'indirect', 'keyword'],
  // steps
  ...['coords.as', 'coords.reorder', 'coords.fuse', 'coords.attach'],
  ...[
    'split',
    'fuse',
    'reorder',
    'serpentine',
    'tile',
    'bind',
    'unroll',
    'vectorize',
    'cache_read',
    'cache_write',
  ],
  ...['compute_at', 'fission', 'rfactor', 'atomic', 'pipeline'],
]

test('every stage and the cpu agree with the reference, under every legal schedule', async () => {
  const device = createCpuDevice()
  const seen = new Map<string, number>()
  let made = 0
  let carried = 0
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = caseOf(choices, 12)
      if (!k) return
      made++
      const done = await carriedOut(k, async () => {
        agreeOnStages(k.compilation, k.bound, k.expected)
        expect(await agreeOnDevice(device, k.compilation, k.bound, k.expected)).toBe(true)
      })
      if (!done) return
      carried++
      for (const u of new Set([...k.sample.uses, ...k.scheduled.accepted]))
        seen.set(u, (seen.get(u) ?? 0) + 1)
    }),
    parameters(CASES),
  )
  if (process.env.SPT_LAW_SHOW) console.log([...seen].map((x) => x.join(' ')).join(', '))
  expect(made).toBeGreaterThan(0.8 * runs(CASES))
  expect(carried).toBeGreaterThan(0.9 * made)
  if (runs(CASES) >= CASES) expect(COVERED.filter((u) => (seen.get(u) ?? 0) < 2)).toEqual([])
}, 3_600_000)
