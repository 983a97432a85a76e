/** What was measured on a processor, and how good a model's choice among it is. */

import { modelDataOf, termsOfCompilation } from '../../src/cost-model/prediction.ts'
import type { Terms } from '../../src/cost-model/terms.ts'
import { devices, type Kernel, load } from '../../src/node.ts'
import { sparseTensors } from '../../src/run/bind/binding-names.ts'
import { rankCorrelation } from '../../src/search/statistics/importance.ts'
import { standardOf } from '../../src/search/tune/alternatives.ts'
import { type Point, sketches } from '../../src/search.ts'
import { inputs as inputsOf, structured } from '../gpu/declared.ts'
import type { Csr } from '../gpu/matrix.ts'
import { geometricMean } from '../gpu/statistics.ts'

/** One line of what `judge-cpu` writes. */
export interface Timing {
  readonly chip: string
  readonly kernel: string
  readonly data: string
  readonly width: number
  /** `UNASKED` and what that was then, since choices change; or a point of one of the spaces as JSON. */
  readonly schedule: string
  readonly milliseconds: number
}

export interface Told extends Timing {
  readonly terms: Terms
}

/** What runs where nobody chooses. */
export const UNASKED = 'unasked: '
const SKETCH = 'sketch '

export const caseOf = ({ kernel, data, width }: Pick<Timing, 'kernel' | 'data' | 'width'>): string =>
  `${kernel} ${data} ${width}`

/** Together what is of one case. */
function casesOf<T extends Timing>(timings: readonly T[]): readonly (readonly T[])[] {
  const cases = new Map<string, T[]>()
  for (const t of timings) {
    const own = cases.get(caseOf(t)) ?? []
    cases.set(caseOf(t), own)
    own.push(t)
  }
  return [...cases.values()]
}

/** A kernel on a matrix. */
export async function problemOf(name: string, A: Csr, width: number) {
  const kernel = (await load(`sparsetile/kernels/${name}.spt`)).kernel(name)
  const { source } = kernel
  const tensors = { [inputsOf(source)[0]!.name]: structured(source, [A.rows, A.columns], A, null, 'f32') }
  const sizes: Readonly<Record<string, number>> = { m: A.rows, n: A.columns, d: width }
  const params = Object.fromEntries(
    source.params.flatMap(({ name: p }) => (sizes[p] === undefined ? [] : [[p, sizes[p]]])),
  )
  return { kernel, tensors, params }
}
export type Problem = Awaited<ReturnType<typeof problemOf>>

/** The spaces that schedules are taken of: the kernel's for cpu, and the sketches. */
export async function spacesOf({ kernel, tensors, params }: Problem) {
  const own = await kernel.space('cpu_space').bind(await devices.cpu(), { ...tensors, ...params })
  return [
    { prefix: '', space: own },
    { prefix: SKETCH, space: sketches(kernel, { device: 'cpu', formats: {} }) },
  ]
}

/** What runs now where nobody chooses. */
export const unaskedOf = async ({ kernel, tensors, params }: Problem): Promise<string> =>
  `${UNASKED}${(await standardOf(kernel, await devices.cpu(), { tensors, params })).schedule ?? ''}`

/** The kernel under a schedule of a `Timing`. */
export async function underSchedule(problem: Problem, schedule: string): Promise<Kernel> {
  const { kernel } = problem
  if (schedule.startsWith(UNASKED)) {
    const [, name, args = ''] = /^(\w+)(?:\((.*)\))?$/.exec(schedule.slice(UNASKED.length)) ?? []
    const numbers = args.split(',').flatMap((a) => (a.trim() === '' ? [] : [Number(a)]))
    return name ? kernel.schedule(name, ...numbers) : kernel
  }
  const spaces = await spacesOf(problem)
  const { prefix, space } = spaces[schedule.startsWith(SKETCH) ? 1 : 0]!
  return space.kernel(JSON.parse(schedule.slice(prefix.length)) as Point)
}

/** With their terms, as they are now. */
export async function told(A: Csr, timings: readonly Timing[]): Promise<Told[]> {
  const out: Told[] = []
  for (const own of casesOf(timings)) {
    const problem = await problemOf(own[0]!.kernel, A, own[0]!.width)
    const { kernel, tensors, params } = problem
    const data = { ...modelDataOf(sparseTensors(kernel.source, tensors)), params }
    for (const t of own)
      out.push({
        ...t,
        terms: termsOfCompilation((await underSchedule(problem, t.schedule)).compilation, data),
      })
  }
  return out
}

/** Cases with fewer schedules say little. */
const LEAST = 6

/** By kernel, and of all: cases; share of the best time that the choice reaches, and what runs unasked; ranks. */
export function judgement(all: readonly Told[], expected: (t: Told) => number): (string | number)[][] {
  const rows = casesOf(all).flatMap((own) => {
    const unasked = own.find((t) => t.schedule.startsWith(UNASKED))
    if (own.length < LEAST || !unasked) return []
    const best = Math.min(...own.map((t) => t.milliseconds))
    const times = new Map(own.map((t) => [t, expected(t)]))
    const chosen = own.reduce((a, b) => (times.get(b)! < times.get(a)! ? b : a))
    const rank = rankCorrelation(
      [...times.values()],
      own.map((t) => t.milliseconds),
    )
    return [
      {
        kernel: own[0]!.kernel,
        chosen: best / chosen.milliseconds,
        unasked: best / unasked.milliseconds,
        rank,
      },
    ]
  })
  return [...new Set(rows.map((r) => r.kernel)), 'all'].map((kernel) => {
    const own = rows.filter((r) => kernel === 'all' || r.kernel === kernel)
    const share = (of: (r: (typeof own)[number]) => number): [number, number] => [
      geometricMean(own.map(of)),
      Math.min(...own.map(of)),
    ]
    return [
      kernel,
      String(own.length),
      ...share((r) => r.chosen),
      ...share((r) => r.unasked),
      own.reduce((s, r) => s + r.rank, 0) / own.length,
    ]
  })
}
