/** The spaces of the kernels: points drawn from them agree with the reference, and what is measured by hand is among them. */
import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import type { Space } from '../../src/api/kernels/space.ts'
import { type Bindable, dense, devices, type Kernel, load, SptError } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { points, samplePoint } from '../../src/search/spaces/points.ts'
import { count, survey } from '../../src/search/spaces/survey.ts'
import type { Point } from '../../src/search/types.ts'
import { runs, SEED } from '../support/cases.ts'
import { integers, matrix, normals, patterns } from '../support/kernels.ts'

const cpu = await devices.cpu()
afterAll(() => cpu.dispose())

const d = 12
type Pattern = ReturnType<typeof patterns>[number]
/** Tensors of each kernel; integers where sums are exact in any order. */
const DATA: Readonly<Record<string, (p: Pattern) => Readonly<Record<string, Bindable>>>> = {
  spmm: (p) => ({ A: matrix(p, integers(p.rows.length, 2)), B: dense([p.n, d], integers(p.n * d, 3)) }),
  sddmm: (p) => ({
    A: matrix(p, integers(p.rows.length, 2)),
    X: dense([p.m, d], integers(p.m * d, 3)),
    Y: dense([p.n, d], integers(p.n * d, 4)),
  }),
  spmv: (p) => ({ A: matrix(p, integers(p.rows.length, 2)), x: dense([p.n], integers(p.n, 3)) }),
  softmax: (p) => ({ A: matrix(p, normals(p.rows.length, 2)) }),
}
const kernels = new Map<string, Kernel>()
for (const name of Object.keys(DATA)) kernels.set(name, (await load(`kernels/${name}.spt`)).kernel(name))

const random = new Random(SEED)
const next = (): number => random.next()

describe.each(
  Object.keys(DATA).flatMap((kernel) => kernels.get(kernel)!.spaces.map((space) => [kernel, space] as const)),
)('%s.%s', (name, spaceName) => {
  const kernel = kernels.get(name)!
  const on = (where: 'cpu' | 'cuda', p: Pattern): Promise<Space<Kernel>> =>
    kernel.space(spaceName).bind(where, { ...DATA[name]!(p), ...sizesOf(name, p) }, { processors: 4 })

  test('has points with legal steps', async () => {
    const space = await on(spaceName === 'cpu_space' ? 'cpu' : 'cuda', patterns().at(-1)!)
    const { points: found, isExact } = count(space)
    expect(isExact).toBe(true)
    expect(found).toBeGreaterThan(3)
    const { legal, rejectedByCode } = survey(space, { limit: runs(4), random: next })
    expect([legal, rejectedByCode]).toEqual([runs(4), {}])
  })

  test('agrees with the reference at random points', async () => {
    const all = patterns()
    for (let k = 0; k < runs(2); k++) {
      const p = all[Math.floor(next() * all.length)]!
      const space = await on(spaceName === 'cpu_space' ? 'cpu' : 'cuda', p)
      const point = samplePoint(space, next)!
      const compiled = await space
        .kernel(point)
        .build(cpu, { auto: false })
        .catch((e: unknown) => exchanging(e))
      if (!compiled) continue
      const prepared = await compiled.bind({ ...DATA[name]!(p), ...sizesOf(name, p) })
      const { ok } = await prepared.verify()
      expect(ok, JSON.stringify([p.name, point])).toBe(true)
    }
  })
})

/** Threads of this device exchange nothing without a barrier. */
function exchanging(e: unknown): null {
  if (e instanceof SptError && e.diagnostics[0]?.code === 'schedule/divergent-barrier') return null
  throw e
}

function sizesOf(name: string, p: Pattern): Record<string, number> {
  const features = name === 'spmm' || name === 'sddmm' ? { d } : {}
  return { m: p.m, n: p.n, ...features }
}

/** `ahead(s, rows, 4)` with the values of a point: the schedule, and its arguments in order. */
function callOf(use: string, point: Point, sizes: Readonly<Record<string, number>>): string {
  const [, name, args = ''] = /^(\w+)(?:\((.*)\))?$/.exec(use)!
  const values = args.split(', ').map((a) => point[a] ?? sizes[a] ?? a)
  return `${name}(${values.join(',')})`
}

test.each(['spmm', 'sddmm'])('the search space of %s contains the hand-tuned schedules', async (name) => {
  const sizes = { n: 1_000_000, d: 128 }
  const statistics = { 'longest(j)': 10_000, 'mean(j)': 40 }
  const space = await kernels
    .get(name)!
    .space('gpu_space')
    .bind('cuda', sizes, { statistics, processors: 132 })
  const calls = new Set<string>()
  for (const p of points(space)) calls.add(callOf(String(p.use), p, sizes))
  const suites = JSON.parse(readFileSync('bench/candidates.json', 'utf8'))
  const measured: string[] = suites[name].candidates
  const lanes = Math.min(32, sizes.d / 4)
  const wanted = measured
    .map((c) => c.slice(`${name}.spt:${name}.`.length))
    .filter((c) => c !== 'auto')
    .map((c) =>
      c
        .replace('{n}', `${sizes.d}`)
        .replace('{lanes}', `${lanes}`)
        .replace('{rows}', `${128 / lanes}`)
        .replace('{warps}', '4'),
    )
  expect(wanted.length).toBeGreaterThan(5)
  expect(
    wanted.filter((c) => ![...calls].some((have) => have === c || have.startsWith(`${c.slice(0, -1)},`))),
  ).toEqual([])
})
