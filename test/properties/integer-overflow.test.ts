/**
 * Integers at the limits of their types, computed as values, compared, and as indices of what is read and written: whatever
 * wraps on the way, every stage and the cpu compute what the reference does, and what is written nowhere is reported.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { checkedPlan } from '../../src/plan/launch-plan.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { checkRanges } from '../../src/run/execution/index-ranges.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { Choices } from '../support/choices.ts'
import { I8, I32, signed, U32 } from '../support/wrapping-gen.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { numbers, parameters, runs } from './property-cases.ts'

/** A program, and the same with a condition around the writes that lose nothing then. */
function texts(c: Choices): readonly [asked: string, guarded: string] {
  const place = signed(c, 3)
  const before = start(c)
  return ['', ` where (${place} >= 0 and ${place} < q)`].map(
    (where) => `${before}  iterate writes [i] as R${where} { h[${place}] += 1 }\n}`,
  ) as [string, string]
}

const start = (c: Choices): string => `kernel k(m: size, q: size) {
  axis i = dense_fixed(m)
  axis t = dense_fixed(q)
  buffer u: u32[i] in
  buffer b: i32[i] in
  buffer c: i8[i] in
  buffer X: f32[t] in fill 5.0
  buffer value: i32[i] out
  buffer element: f32[i] out
  buffer holds: f32[i] out
  buffer asked: f32[i] out
  buffer h: i32[t] out
  iterate values [i] as S { value[i] = ${signed(c, 3)} }
  iterate reads [i] as S { element[i] = X[${signed(c, 3)}] }
  iterate conditions [i] as S where (${signed(c, 2)} ${c.pick(['<', '>=', '>', '=='])} ${signed(c, 2)}) { holds[i] = 1.0 }
  iterate asks [i] as S { if (${signed(c, 2)} ${c.pick(['<', '>=', '<='])} ${signed(c, 2)}) { asked[i] = select(${signed(c, 2)} ${c.pick(['<', '>='])} ${signed(c, 2)}, 1.0, 2.0) } }
`

/** Sizes that a schedule relies on. */
const relied = (text: string, c: Choices): Compilation =>
  parseProgram(text)
    .kernel()
    .require('m', c.pick([{ multiple: 2 }, { equal: 6 }]))
    .require('q', c.pick([{ multiple: 2 }, { equal: 4 }])).compilation

const CASES = 30

test('integers wrap equally at every stage, as values and in indices', async () => {
  const device = createCpuDevice()
  const seen = { all: 0, refused: 0, lost: 0 }
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const c = new Choices(choices)
      const [asked, guarded] = texts(c)
      const m = 6
      const of = (from: readonly number[]): number[] => Array.from({ length: m }, () => c.pick(from))
      const tensors = {
        u: dense([m], new Uint32Array(of(U32))),
        b: dense([m], new Int32Array(of(I32))),
        c: dense([m], new Int8Array(of(I8))),
        X: dense([4], new Float32Array([10, 20, 30, 40])),
      }
      seen.all++
      try {
        const [compilation, other] = [guarded, asked].map((x) => parseProgram(x).kernel().compilation)
        const bound = bindInputs(compilation!.kernel, { tensors })
        const expected = reference(compilation!.source, referenceInputs(compilation!.source, bound)).buffers
        checkRanges(checkedPlan(compilation!.plan), bound.params)
        agreeOnStages(compilation!, bound, expected)
        await agreeOnDevice(device, compilation!, bound, expected)
        const facts = relied(guarded, c)
        const under = bindInputs(facts.kernel, { tensors })
        agreeOnStages(facts, under, expected)
        await agreeOnDevice(device, facts, under, expected)
        const counted = Array.from(expected.h!.values).reduce((sum, x) => sum + x, 0)
        if (counted < m) seen.lost++
        await agreeOnDevice(device, other!, bindInputs(other!.kernel, { tensors }), expected, counted < m)
      } catch (e) {
        // What is known to be 0 is no divisor; places of sizes and constants alone are exact.
        const known = e instanceof SptError ? e.diagnostics[0]!.code : String(e)
        if (!/^check\/|plan\/overflow/.test(known)) {
          const data = Object.entries(tensors).map(([name, x]) => `${name} = ${x.values}`)
          throw new Error(`${e instanceof Error ? e.message : e}\n${asked}\n${data.join('\n')}`)
        }
        seen.refused++
      }
    }),
    parameters(CASES),
  )
  if (runs(CASES) >= CASES) expect(seen.lost).toBeGreaterThan(CASES / 12)
  expect(seen.refused).toBeLessThan(5 + seen.all / 3)
}, 3_600_000)

test.each([
  'i32(i) * 1073741824 >= 0',
  'i32(i) + 2147483645 >= 0',
  'i32(i) * 715827883 + 5 >= 0 and 0 - i < 1',
])('(%s) is evaluated in 32 bits, for any facts about sizes', async (condition) => {
  const text = `kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer Y: f32[i] out
  iterate s [i] as S where (${condition}) { Y[i] = 1.0 }
}`
  for (const by of [{ multiple: 2 }, { equal: 6 }] as const) {
    const k = parseProgram(text).kernel().require('m', by).compilation
    const bound = bindInputs(k.kernel, { params: { m: 6 } })
    const expected = reference(k.source, referenceInputs(k.source, bound)).buffers
    expect(new Set(expected.Y!.values).size).toBe(2)
    agreeOnStages(k, bound, expected)
    await agreeOnDevice(createCpuDevice(), k, bound, expected)
  }
  // The loop implies that coordinates are not negative, and then no code computes the condition.
  const exact = text.replaceAll('i32(i)', 'i').replaceAll('>= 0', '>= 1')
  const control = parseProgram(exact).kernel().compilation
  const check = (m: number) => () => checkRanges(checkedPlan(control.plan), new Map([['m', m]]))
  expect(check(1)()).toBe(false)
  // Sizes that were accepted vouch for no larger ones.
  expect(check(6)).toThrow('plan/overflow')
})
