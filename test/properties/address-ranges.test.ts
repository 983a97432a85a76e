/**
 * Extents and addresses near 2^16 and 2^31, without running: a plan is refused, or everything that leads to an iteration or
 * an element is in 32 bits what it is exactly. Sizes of a few elements are never refused.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { boundsOf } from '../../src/analysis/integers/ranges.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { TARGETS } from '../../src/backends/targets/index.ts'
import type { Expr } from '../../src/ir/expressions/expr.ts'
import { add, binary, cast, int, lt, neg, select, variable } from '../../src/ir/expressions/expr.ts'
import type { Kernel3 } from '../../src/ir/statements/loops.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import type { BinaryOp } from '../../src/ir/values/math.ts'
import { checkedPlan } from '../../src/plan/launch-plan.ts'
import { elements } from '../../src/run/execution/buffer-layout.ts'
import { checkRanges } from '../../src/run/execution/index-ranges.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { Choices } from '../support/choices.ts'
import { differenceIn } from '../support/exact-plan.ts'
import { generate } from '../support/program-gen.ts'
import { readSample } from '../support/read-sample.ts'
import { schedule } from '../support/schedule-gen.ts'
import { numbers, parameters, runs } from './property-cases.ts'

const LARGE = [
  65_536,
  2 ** 31 - 1,
  65_535,
  65_537,
  46_341,
  2 ** 20,
  2 ** 30,
  2 ** 16 - 33,
  2 ** 31 - 33,
  3,
  1,
  64,
]

/** Why sizes are refused. */
function refusal(plan: Kernel3, sizes: ReadonlyMap<string, number>): string | undefined {
  try {
    const checked = checkedPlan(plan)
    for (const b of checked.buffers) elements(b, { params: sizes })
    checkRanges(checked, sizes)
    return undefined
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
}

/** Small buffers under large iteration spaces: nothing but extents and indices can be too large. */
function products(c: Choices): string {
  const index = [
    () => c.pick(['i', 'f', 'h']),
    () => `(i * n + f) / ${c.pick(['n', '4', 'm'])}`,
    () => `(f * p + h) % ${c.pick(['p', '64', 'n'])}`,
    () => `(i + f + h) / ${c.pick(['3', '2'])}`,
    () => 'f - h',
    () => `L[${c.pick(['i', 'f'])}]`,
    () => `min(i * ${c.pick(['64', '65536', 'p'])}, m - 1)`,
  ]
  const value = (): string => `X[${c.pick(index)()}]`
  const where = c.chance(30) ? ` where (${c.pick(['i * p + h < m', 'h < i', 'f + i < n'])})` : ''
  return `kernel k(m: size, n: size, p: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(n)
  axis h = dense_fixed(p)
  axis x = dense_fixed(m)
  axis o = dense_fixed(1)
  buffer L: i32[x] in
  buffer X: f32[x] in
  buffer S: f32[o] out
  iterate s [o, i, f, h] as SRRR${where} { S[o] += ${value()} * ${value()} + f32(i * n + f) }
}`
}

const CASES = 100

test('plans count and address exactly, or are rejected', () => {
  const seen = { large: 0, refused: 0, right: 0 }
  fc.assert(
    fc.property(numbers, (choices) => {
      const c = new Choices(choices)
      const text = c.chance(60) ? products(c) : generate(c).text
      let plan: Kernel3
      let trace: readonly string[]
      try {
        const { program, formats } = readSample({ text })
        const scheduled = schedule(c, program.kernel().compilation, formats, 5)
        trace = scheduled.trace
        plan = scheduled.compilation.plan
      } catch (e) {
        if (e instanceof SptError) return
        throw e
      }
      const of = (value: () => number): Map<string, number> =>
        new Map(plan.params.filter((p) => p.kind === 'size').map((p) => [p.name, value()]))
      expect(
        refusal(
          plan,
          of(() => c.below(9)),
        ),
      ).toBeUndefined()
      for (let n = 0; n < 8; n++) {
        const sizes = of(() => c.pick(n % 2 === 0 ? LARGE : [...LARGE.slice(0, 5), 1]))
        const refused = refusal(plan, sizes)
        seen.large++
        if (refused === 'plan/overflow') seen.refused++
        if (refused) continue
        seen.right++
        const wrong = differenceIn(plan, sizes, (k) => c.below(k))
        if (wrong)
          throw new Error(
            `${wrong}\n${JSON.stringify([...sizes])}\n${text.slice(text.search(/^kernel/m))}\n${trace.join('\n')}`,
          )
      }
    }),
    { ...parameters(CASES), endOnFailure: true },
  )
  expect(seen.right).toBeGreaterThan(seen.large / 50)
  if (runs(CASES) >= CASES) expect(seen.refused).toBeGreaterThan(20)
})

/** Coordinates under fused and bound loops, data, and ends that only a type gives: none of them is large. */
const BOUNDED = [
  'W[min(j + 1, 2), i]',
  'W[max(i - 2, 0), min(j, 3)]',
  'W[min(V[i] + 1, 2), i]',
  'W[min(max(V[i], j) + j, 2), max(min(i, V[i]) - 1, 0)]',
  'W[max(0, 2 - abs(V[i] - j)), i]',
  'W[i, min(V[j] * 3 + 1, 2)]',
]
test.each(BOUNDED)('%s is never rejected for sizes within its range', (access) => {
  const program = parseProgram(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_variable(i, n)
  axis f = fused(i, j)
  axis x = dense_fixed(m)
  axis y = dense_fixed(m)
  axis z = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer V: i32[z] in
  buffer W: f32[x, y] in
  buffer Y: f32[i] out
  iterate s [f] as R { Y[i] += A[i, j] * ${access.replace(/V\[i\]/g, 'V[min(i, n - 1)]')} }
}`)
  const k = program.kernel()
  for (const { plan } of [k, k.parallel(), k.split('f', 4)].map((x) => x.compilation))
    for (const [m, n, count] of [
      [2, 7, 14],
      [40_000, 50_000, 2_000_000_000],
      [46_340, 46_340, 2 ** 31 - 70_000],
    ])
      expect(refusal(plan, new Map(Object.entries({ m: m!, n: n!, j_count: count! })))).toBeUndefined()
})

test.each([
  [2 ** 29, undefined],
  [2 ** 31 - 1, 'plan/overflow'],
])('an index 2 * j - 1 over runs of %i columns', (n, refused) => {
  const { plan } = parseProgram(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = run(i, n)
  axis x = dense_fixed(m)
  buffer A: f32[i, j] in
  buffer X: f32[x] in fill 1
  buffer Y: f32[i] out
  iterate s [i, j] as SR { Y[i] += A[i, j] * X[2 * j - 1] }
}`).kernel().compilation
  expect(refusal(plan, new Map(Object.entries({ m: 4, n, j_count: 9 })))).toBe(refused)
})

const DOT = `
kernel dot(m: size, n: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(n)
  axis o = dense_fixed(1)
  buffer X: f32[i] in
  buffer Y: f32[f] in
  buffer S: f32[o] out
  iterate s [o, i, f] as SRR { S[o] += X[i] * Y[f] }
}
kernel outer(m: size, n: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(n)
  buffer X: f32[i] in
  buffer Y: f32[i] out
  iterate s [i, f] as SR { Y[i] += X[(i * n + f) / n] }
}
schedule dot.plain { split f by 1 -> (fo, fi)
  fuse (i, fo) -> g }
`

test.each([
  [
    'dot.plain',
    65_536,
    65_536,
    'the extent of loop g in dot_0 does not fit 32 bits: m * n is 4294967296 (m = 65536, n = 65536)',
  ],
  ['dot.plain', 65_537, 32_768, 'm * n is 2147516416 (m = 65537, n = 32768)'],
  [
    'outer',
    65_536,
    65_537,
    'an expression in outer_0 does not fit 32 bits: i * n reaches 4294967295 (n = 65537)',
  ],
  ['dot', 65_536, 65_536, null],
  ['outer', 46_340, 46_340, null],
])('%s of %i × %i', async (name, m, n, message) => {
  const program = parseProgram(DOT)
  const [kernel, chosen] = name.split('.')
  const k = program.kernel(kernel)
  const scheduled = chosen ? k.schedule(chosen) : k
  const sizes = new Map(Object.entries({ m, n }))
  const plan = scheduled.compilation.planFor(TARGETS.js.lowering)
  if (message !== null) expect(() => checkRanges(checkedPlan(plan), sizes)).toThrow(message)
  expect(checkRanges(checkedPlan(plan), sizes, true)).toBe(message !== null)
  const compiled = await scheduled.build(createCpuDevice())
  expect(compiled.estimateBytes({ m, n })).toBeGreaterThan(0)
})

const OPS: readonly BinaryOp[] = [
  'add',
  'sub',
  'mul',
  'div',
  'mod',
  'quo',
  'rem',
  'min',
  'max',
  'lt',
  'ge',
  'eq',
]
const ENDS = [0, 1, -1, 2, 7, 65_535, 65_536, -65_537, 2 ** 31 - 1, -(2 ** 31)]
const expressions = fc.letrec<{ e: Expr }>((tie) => ({
  e: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...['x', 'y', 'z'].map((v) => variable(v))),
    fc.constantFrom(...ENDS).map(int),
    tie('e').map((x) => neg(x)),
    fc
      .tuple(fc.constantFrom(...OPS), tie('e'), tie('e'))
      .map(([op, a, b]) => binary(op, a, b))
      .map((x) => (x.dtype === 'bool' ? select(x, int(3), int(-4)) : x)),
  ),
})).e

test('the bounds of an expression contain every value, and a point is its value', () => {
  const ranges = fc
    .tuple(fc.constantFrom(...ENDS), fc.nat(70_000))
    .map(([lo, n]) => [lo, Math.min(2 ** 31 - 1, lo + n)] as const)
  fc.assert(
    fc.property(
      expressions,
      fc.tuple(ranges, ranges, ranges),
      fc.tuple(fc.nat(), fc.nat(), fc.nat()),
      (e, box, at) => {
        const names = ['x', 'y', 'z']
        const point = new Map(names.map((v, k) => [v, box[k]![0] + (at[k]! % (box[k]![1] - box[k]![0] + 1))]))
        const value = evaluate(e, point)
        const bounds = boundsOf(e, (v) => box[names.indexOf(v)])!
        // Beyond 2^53 doubles round.
        if (Math.max(Math.abs(bounds.lo), Math.abs(bounds.hi)) > 2 ** 53) return
        expect(value).toBeGreaterThanOrEqual(bounds.lo)
        expect(value).toBeLessThanOrEqual(bounds.hi)
        const alone = boundsOf(e, (v) => [point.get(v)!, point.get(v)!])!
        expect([alone.lo, alone.hi]).toEqual([value + 0, value + 0])
      },
    ),
    { numRuns: 3000, seed: 7 },
  )
})

test('wrapping values of a program do not hide overflow in compiler-generated indices', () => {
  const { plan } = parseProgram(
    'kernel k(m: size) { axis i = dense_fixed(m)\nbuffer Y: i32[i] out\niterate s [i] as S where (i * i < 5) { Y[i] = 1 } }',
  ).kernel().compilation
  const value = cast(variable('m'), 'i32')
  const text = binary('mul', value, value)
  const made = binary('mul', variable('m'), int(4))
  const asked = (cond: Expr): Kernel3 => {
    const [launch] = plan.steps.filter((s) => s.kind === 'launch')
    return { ...plan, steps: [{ ...launch!, body: [when(cond, [])] }] }
  }
  const sizes = new Map([['m', 2 ** 30]])
  expect(refusal(asked(lt(text, int(5))), sizes)).toBeUndefined()
  for (const cond of [lt(made, int(5)), lt(add(made, text), int(5)), lt(add(text, made), int(5))])
    expect(refusal(asked(cond), sizes)).toBe('plan/overflow')
})
