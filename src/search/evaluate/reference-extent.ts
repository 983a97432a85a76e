/** Extent of the reference of a study: all results, or as many rows as can be computed in a few seconds. */
import type { Workspace } from '../../api/resident/workspace.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { countOf, isStored, parentOf, segmentSize } from '../../ir/coordinates/axis.ts'
import type { Iteration, Kernel1, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { expectedWithin } from '../../run/bind/results/reference-inputs.ts'

export type Extent = NonNullable<Parameters<Workspace['referenceResults']>[0]>

/** Maximum number of coordinates that the reference visits: one or two seconds. */
const MAX_VISITS = 2 ** 25
const SAMPLES = [1000, 30, 1] as const

type ReferenceRequest = Parameters<typeof expectedWithin>[0]
type ReferenceResult = ReturnType<typeof expectedWithin>

/**
 * The extent of results that candidates are compared with: all, or a sample drawn with `seed`, as far as `compute` succeeds.
 * @throws SptError `search/reference-too-long`, and as `reference`; errors of `compute`
 */
export const computeReferenceExtent = async (
  data: Workspace,
  seed: number,
  compute: (requestFor: ReferenceRequest) => Promise<ReferenceResult>,
): Promise<Extent> => adoptResult(data, MAX_VISITS, await compute(requestFor(data, seed, MAX_VISITS)))

/** As `computeReferenceExtent`, synchronously in this thread. */
export const referenceExtent = (data: Workspace, seed: number, visits: number = MAX_VISITS): Extent =>
  adoptResult(data, visits, expectedWithin(requestFor(data, seed, visits)))

/** Skips attempts whose estimated visits exceed the limit, which takes longer to discover by visiting. */
function requestFor(data: Workspace, seed: number, visits: number): ReferenceRequest {
  const { kernel, params } = data.problemSize
  const total = visitsOf(kernel, params)
  const rows = rowsOf(kernel, params)
  const isTooMuch = (count: number): boolean => count > 1 && (total * Math.min(count, rows)) / rows > visits
  const samples = SAMPLES.filter((count) => !isTooMuch(count)).map((count) => ({
    sample: { count, seed },
    visits,
  }))
  return {
    kernel,
    inputs: data.referenceInputs,
    extents: [...(total > visits ? [] : [{ visits }]), ...samples],
  }
}

function adoptResult(data: Workspace, visits: number, result: ReferenceResult): Extent {
  if (result) {
    data.adoptReferenceResults(result.extent, result.outputs)
    return result.extent
  }
  return failWith(
    'search/reference-too-long',
    `the reference visits more than ${visits} coordinates for a single row of the results, or no row can be computed by itself`,
    {
      expected: 'a kernel whose results can be computed by the reference',
      hint: 'tune with smaller sizes, and run the winner on the large ones',
    },
  )
}

type Params = ReadonlyMap<string, number>

/** Upper bound of the coordinates that the reference visits for all results, from sizes and counts. */
function visitsOf(kernel: Kernel1, params: Params): number {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const chain = (name: string): string[] => {
    const axis = axes.get(name)
    const parent = axis && parentOf(axis)
    return parent ? [...chain(parent), name] : [name]
  }
  const iterationVisits = (it: Iteration): number => {
    const names = it.iters.map((i) => i.axis)
    // The number of entries of an axis includes those of its ancestors.
    const ancestors = new Set(names.flatMap((n) => (params.has(countOf(n)) ? chain(n).slice(0, -1) : [])))
    return names.reduce((n, name) => {
      if (ancestors.has(name)) return n
      const axis = axes.get(name)
      const count = params.get(countOf(name))
      if (count !== undefined) return n * count
      return axis && isStored(axis) ? n * Math.max(1, evaluate(segmentSize(axis) ?? axis.extent, params)) : n
    }, 1)
  }
  const visitsIn = (body: readonly Stmt1[]): number =>
    body.reduce((n, s) => n + (s.kind === 'iterate' ? iterationVisits(s) : 0), 0)
  return visitsIn(kernel.body)
}

/** Rows of the first output, which are usually sampled. */
function rowsOf(kernel: Kernel1, params: Params): number {
  const output = kernel.buffers.find((b) => b.role === 'out' || b.role === 'inout')
  const axis = kernel.axes.find((a) => a.name === output?.axes[0])
  return axis && isStored(axis) ? Math.max(1, evaluate(axis.extent, params)) : 1
}
