/** How the nests that find a format's structure run where no step says it, and where steps do. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { verifyPass, verifyStage } from '../../src/api/stages/stage-verifier.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { For } from '../../src/ir/statements/loops.ts'
import { checkedPlan } from '../../src/plan/launch-plan.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { checkRanges } from '../../src/run/execution/index-ranges.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { sample } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'
import { standard } from '../support/packaged-formats.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { KERNELS, LIVE, type Live, live } from './live-gen.ts'
import { asWritten, SCHEDULES, told } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

const ALL = SCHEDULES.flatMap((name) =>
  (Object.keys(LIVE) as (keyof typeof LIVE)[]).flatMap((format) =>
    (Object.keys(KERNELS) as (keyof typeof KERNELS)[]).map((kernel) => [name, format, kernel] as const),
  ),
)

// Of these, a few in each run.
test.each(sample(ALL, 30))(
  'two launches build the format, and one more if lists are fused: %s, %s, %s',
  (name, format, kernel) => {
    const nests = name === 'live' ? 2 : 3
    fc.assert(
      fc.property(numbers, (n) => {
        const s = live(new Choices(n), format, kernel)
        const blocks = (of: Compilation): readonly number[] =>
          of.parallel().plan.steps.map((x) => (x.kind === 'launch' ? x.block.reduce((a, b) => a * b) : 0))
        const as = parseProgram(s.text).kernel().schedule(name)
        const launches = blocks(as.compilation)
        checkRanges(
          checkedPlan(as.compilation.parallel().plan),
          new Map(['m', 'n', 'k'].map((size) => [size, 4096])),
        )
        const own = launches.filter((x) => x > 0)
        // What is summed over lists may start at 0 before.
        if (name === 'live') expect(own.length).toBe(3 + s.writers)
        expect(launches.length - own.length).toBeLessThan(2)
        const built = own.slice(s.writers, s.writers + nests)
        for (const threads of built) expect(threads, s.text).toBeGreaterThanOrEqual(128)
        // A sketch of the others leaves them as they are.
        const sketched = as.inspect.scheduleCandidates('cuda')[0]
        if (sketched)
          expect(
            blocks(sketched.kernel.compilation)
              .filter((x) => x > 0)
              .slice(s.writers, s.writers + nests),
          ).toEqual(built)
      }),
      parameters(1),
    )
  },
)

/** Copies that threads read a vector of elements into stand inside of the reduction over a word, and combine nothing. */
test.each(['panels(1, 4)', 'strips(8, 1)', 'rows_of(2, 3)', 'blocks(1, 4)'] as const)(
  'the default schedules of builders keep every invariant: %s',
  (format) => {
    const [name] = format.split('(') as [keyof typeof LIVE]
    const text = `${LIVE[name].text}\n${KERNELS.left}\nschedule product.s { A as ${format} live in place }`
    const c = parseProgram(text).kernel().schedule('s').compilation.parallel()
    expect(c.loops.body.flatMap((s) => loopsOf([s])).some((l) => l.mode.kind === 'vectorize')).toBe(true)
    verifyStage(c.loops)
    c.observe(verifyPass, { lanes: 32 })
  },
)

const nestOf = (c: Compilation, name: string): For =>
  c.loops.body.find((s): s is For => s.kind === 'for' && s.nest === name)!

test.each(Object.keys(LIVE) as (keyof typeof LIVE)[])(
  'a single thread marks under the default schedule, unless a step changes it: %s',
  async (format) => {
    await fc.assert(
      fc.asyncProperty(numbers, (n) => {
        const choices = new Choices(n)
        const s = live(choices, format)
        const as = parseProgram(s.text).kernel().schedule(choices.pick(SCHEDULES))
        return told([s.text, s.sizes], async () => {
          const alone = as.compilation.sequential()
          expect(loopsOf([nestOf(alone, 'mark_A')]).some((l) => l.mode.kind === 'unroll')).toBe(true)
          await agreeOnAll(alone, s.inputs)
          const mark = nestOf(as.compilation, 'mark_A')
          const { compilation } = as.unroll(`mark_A.${mark.name}`, 2)
          expect(nestOf(compilation.sequential(), 'mark_A') === nestOf(compilation, 'mark_A')).toBe(true)
        })
      }),
      parameters(2),
    )
  },
)

/** A block has the words of a list. */
const ONE_LAUNCH = `
schedule product.one {
  join (mark_A, place_A) at mark_A.io
  bind joined.io to block.x
  split jo_word by 32 -> (wc, wl)
  split wc by 2 -> (wo, wr)
  bind wr to thread.y, wl to thread.x
  split jo_chunk by 2 -> (co, cr)
  bind cr to thread.y
  split jo_any by 32 -> (ao, al)
  bind al to thread.x
  cache_write counts_A at cr in register
  split jo_earlier by 32 -> (eo, el)
  bind el to thread.x
  cache_write bases_A at cr in register
  bind size_A.jo_part to thread.x, rank_A.jo_part to thread.x
  cache_write starts_A at rank_A.jo_part in register
}`

test('marking and placing are one launch if their outer loops are joined', async () => {
  const c = (s: Live): Compilation =>
    parseProgram(`${s.text}${ONE_LAUNCH.replace('{', `{ ${/A as .*place/.exec(s.text)![0]}`)}`)
      .kernel()
      .schedule('one').compilation
  let gpu = false
  await fc.assert(
    fc.asyncProperty(numbers, (n) => {
      const choices = new Choices(n)
      const s = live(choices, choices.pick(['panels', 'strips', 'blocks']), 'left')
      gpu = !gpu
      return told([s.text, s.sizes], async () => {
        const compilation = c(s)
        if (!gpu) return agreeOnAll(compilation, s.inputs)
        const parallel = compilation.parallel()
        expect(parallel.plan.steps.filter((x) => x.kind === 'launch').length).toBe(2)
        const { bound, expected } = asWritten(compilation, s.inputs)
        await agreeOnDevice(webgpu, parallel, bound, expected)
      })
    }),
    parameters(8),
  )
}, 3_600_000)

test('chunks skip words beyond the axis, and consumers read the count without a condition', () => {
  const loops = print2(
    parseProgram(`${standard('csr')}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer M: i32[i, j] in
  buffer O: i32[i] out
  iterate o [i, j] as SR { O[i] += M[i, j] }
}
schedule k.s { M as csr live in place }`)
      .kernel()
      .schedule('s').compilation.loops,
  )
  expect(loops).toMatch(
    /\n +if (\w+ \* 32 \+ \w+ < ceildiv\(n, 32\))\n +for \w+ .*where bit_and\(select\(\1, marks_M/,
  )
  expect(loops).toMatch(/for jo in 0\.\.counts_M\[0, io\w*\]/)
})
