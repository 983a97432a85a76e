/** What a kernel is lowered to for one target does not depend on those that it was lowered for before. */
import { expect, test } from 'vitest'
import { TARGETS } from '../../src/backends/targets/index.ts'
import { print2, print3 } from '../../src/ir/print/print-stage2.ts'
import type { Kernel2 } from '../../src/ir/statements/loops.ts'
import { LAUNCH_PASSES, LOOP_PASSES, type LowerOptions } from '../../src/lower/passes.ts'
import { checkLowering, lowerToMemory } from '../../src/lower/pipeline.ts'
import { load } from '../../src/node.ts'
import { sample } from '../support/cases.ts'

const OPTIONS: readonly LowerOptions[] = [
  {},
  TARGETS.js.lowering,
  TARGETS.wgsl.lowering,
  TARGETS.cuda.lowering,
  { ...TARGETS.cuda.lowering, lanes: 4 },
]

/** With a schedule of which how many lanes a target has makes another plan, or with some of all. */
const KERNELS = [
  ['sddmm', 'sddmm', 'wide'],
  ['softmax', 'softmax', null],
  ['spmv', 'spmv', null],
  ['dynamic-sparsity', 'masked_matmul', null],
] as const

for (const [file, name, always] of KERNELS)
  test(`${name}: results equal those for a single target, and observers see every pass`, async () => {
    const read = async () => (await load(`kernels/${file}.spt`)).kernel(name)
    const schedules = always === null ? [null, ...sample((await read()).schedules, 3)] : [always]
    for (const s of schedules) {
      const loops = async () => {
        const kernel = await read()
        return (s === null ? kernel : kernel.schedule(s)).compilation.loops
      }
      const lowered = (k: Kernel2, options: LowerOptions): readonly string[] => {
        const seen: string[] = []
        const plan = lowerToMemory(
          k,
          (pass, x) => seen.push(`${pass}\n${x.stage === 2 ? print2(x) : print3(x)}`),
          options,
        )
        return [...seen, print3(plan)]
      }
      const alone: (readonly string[])[] = []
      for (const options of OPTIONS) alone.push(lowered(await loops(), options))
      const one = await loops()
      checkLowering(one, {})
      for (const k of [0, 3, 4, 1, 2, 0, 2, 1]) expect(lowered(one, OPTIONS[k]!)).toEqual(alone[k])
    }
  })

test('passes that read options are marked as dependent on the target', () => {
  const own = [...LOOP_PASSES, ...LAUNCH_PASSES].filter((p) => p.dependsOnTarget)
  const asking = [
    ...LOOP_PASSES.filter(({ run }) => /^function \w+\([^)]*,/.test(String(run))),
    ...LAUNCH_PASSES.filter(({ run }) => /\boptions\b/.test(String(run))),
  ]
  expect(asking.map((p) => p.name)).toEqual(own.map((p) => p.name))
  expect(own.map((p) => p.name)).toEqual([
    'cross-thread-reduction',
    'loop-trimming',
    'set-bit-iteration',
    'scalar-promotion',
  ])
})
