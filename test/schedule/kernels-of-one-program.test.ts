/** Schedules of one program do not affect each other: each gives the loops that it gives in a fresh program. */
import { expect, test } from 'vitest'
import { type Kernel, load, SptError } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { samplePoint } from '../../src/search/spaces/points.ts'
import type { Point } from '../../src/search/types.ts'
import { runs, SEED } from '../support/cases.ts'

const spaceOf = async (kernel: Kernel) =>
  kernel
    .space('gpu_space')
    .bind(
      'cuda',
      { m: 1000, n: 1000, d: 64 },
      { statistics: { 'longest(j)': 300, 'mean(j)': 10 }, processors: 132 },
    )
const spmm = async (): Promise<Kernel> => (await load('kernels/spmm.spt')).kernel('spmm')

/** Loops and what they came from; of what is refused, all that is said. */
async function made(kernel: Kernel, point: Point): Promise<string> {
  const space = await spaceOf(kernel)
  try {
    const k = space.kernel(point)
    return [k.show(2), ...k.trace].join('\n')
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return JSON.stringify(e.diagnostics)
  }
}

test('points give equal loops in any order', async () => {
  const random = new Random(SEED)
  const shared = await spmm()
  const space = await spaceOf(shared)
  for (let k = 0; k < 20; k++) await made(shared, samplePoint(space, () => random.next())!)
  for (let k = 0; k < runs(6); k++) {
    const point = samplePoint(space, () => random.next())!
    expect(await made(shared, point), JSON.stringify(point)).toBe(await made(await spmm(), point))
  }
})

const TWO = `kernel two(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i] in
  buffer B: f32[i] out
  buffer C: f32[j] out
  iterate first [i] as S { B[i] = 2.0 * A[i] }
  iterate second [j] as S { C[j] = 1.0 }
}
`
const variables = (k: Kernel): readonly string[] =>
  [...JSON.stringify(k.compilation.loops.body).matchAll(/"var":"(\w+)"/g)].map(([, v]) => v!)

test('names avoid the names of the same schedule only', async () => {
  const program = await load(TWO)
  const alone = program.kernel().split('i', 8, ['o', 'p'])
  expect(variables(alone)).toEqual(['o', 'p', 'j'])
  const again = program.kernel().split('i', 8, ['o', 'p'])
  const after = program.kernel().split('j', 8, ['o', 'p']).split('i', 8, ['o', 'p'])
  expect(variables(after)).toEqual(['o_2', 'p_2', 'o', 'p'])
  expect(variables(again.split('j', 8, ['o', 'p']))).toEqual(['o', 'p', 'o_2', 'p_2'])
})

test('facts about sizes are those of a schedule: a split is exact for known multiples', async () => {
  const program = await load(TWO)
  const guards = (k: Kernel): boolean => k.show(2).includes('where')
  expect(guards(program.kernel().split('i', 8))).toBe(true)
  expect(guards(program.kernel().require('m', { multiple: 8 }).split('i', 8))).toBe(false)
  expect(guards(program.kernel().split('i', 8))).toBe(true)
})

test('a rejection prints the whole kernel, also the second time', async () => {
  const program = await load(TWO)
  const refused = (): string => {
    try {
      program.kernel().split('i', 8).bind({ io: 'thread.x' })
    } catch (e) {
      return (e as SptError).diagnostics[0]!.notes!.join()
    }
    return ''
  }
  expect(refused()).toContain('for j in')
  expect(refused()).toBe(refused())
})
