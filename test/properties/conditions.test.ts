/**
 * What a condition leaves out has its initial value: whatever expression the condition is, whoever is under it, with and
 * without a schedule. Memory is poisoned before each run.
 */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { LONG } from '../support/cases.ts'
import { conditional } from '../support/condition-gen.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { assertCases, caseOf } from './property-cases.ts'

const CASES = 50

const COVERED = [
  ...[
    'coordinate',
    'element',
    'literal',
    'size',
    'scalar',
    'neg',
    'abs',
    'min',
    'max',
    'select',
    'shift',
    'xor',
  ],
  ...['popcount', 'floor', 'mod', 'div', '+', 'not', 'and', 'or', 'either', 'same', 'flag', 'compare'],
  ...['where', 'if', 'let', 'nested', 'own', 'again', 'tuple', 'reduce', 'assign', 'local', 'out'],
]

/** Conditions and indices whose initial values or bounds were once left out. */
const FOUND = [
  ...[
    'abs(V[i]) > 0.5',
    'i32(V[i]) > 0',
    'max(V[i], 0) > 0',
    '-V[i] > 0',
    '-i < -3',
    'shift_left(i, 1) > 6',
    'shift_right(i, 1) > 2',
    'shift_right(-i, 30) > 2',
  ],
  ...[
    'exp(V[i]) > 1',
    'min(i, 5) == 5',
    'f32(i) < 3.5',
    'true == (V[i] > 0)',
    'select(V[i] > 0, i > 1, i > 2)',
  ],
  ...['not (V[i] > 0)', 'n > 90', 'V[0] > 90', 'a > 0.0', 'false', '2 < 1', 'f32(i) == f32(i)'],
].map((c) => `iterate s [i] as S where (${c}) { Y[i] = V[i] }`)
const BESIDES = [
  // Conditions on nothing that is combined leave out all of the combining, or the reductions of a row.
  'iterate s [i, j] as SR where (n > 90) { Y[i] += V[i] }',
  'iterate s [i, j] as SR where (V[0] > 90) { Y[i] += V[i] }',
  'iterate s [i] as S { let t = V[i] let u = t + 1 iterate r [j] as R where (u > 2) { Y[i] += W[j] } }',
  'iterate s [i] as S { let t = -V[i] iterate r [] where (t > 0) { Y[i] = t } }',
  'iterate s [i, j] as SR where (f32(j) != f32(j)) { Y[i] *= W[j] }',
  'iterate s [i, j] as SR { if (false) { Y[i] max= W[j] } }',
  // What is below a bound may be negative, and its remainder is not.
  'iterate s [i] as S where (i - 3 < n) { Y[i] = V[(i - 3) % 10] }',
  'iterate s [i] as S { if (i - 3 < n) { Y[i] += V[(i - 3) % 10] } }',
]

test.each([...FOUND, ...BESIDES])('%s', async (body) => {
  const program = await load(`kernel k(n: size, a: f32) {
  axis i = dense_fixed(n) axis j = dense_fixed(3)
  buffer V: f32[i] in buffer W: f32[j] in buffer Y: f32[i] out
  ${body}
}`)
  const device = createCpuDevice()
  const compiled = await program.kernel().build(device)
  const V = Float32Array.of(-1, 2, 0, 3, -2, 1)
  const prepared = await compiled.bind({ V, W: Float32Array.of(1, 2, 3), a: -1 })
  expect((await prepared.verify()).problems).toEqual([])
})

test('every element has a value under any condition', async () => {
  const device = createCpuDevice()
  const seen = new Set<string>()
  await assertCases(
    // Half of the cases have no schedule.
    (choices) => caseOf(choices, 8 * (choices.at(-1)! % 2), conditional),
    async (k) => {
      agreeOnStages(k.compilation, k.bound, k.expected)
      await agreeOnDevice(device, k.compilation, k.bound, k.expected)
      for (const u of k.sample.uses) seen.add(u)
    },
    CASES,
  )
  // Fewer cases may lack some.
  if (LONG) expect(COVERED.filter((u) => !seen.has(u))).toEqual([])
})
