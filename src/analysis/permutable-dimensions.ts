/**
 * Which dimensions of tensors may be permuted (PIT axes; Zheng et al., SOSP 2023). Iterations have no order and reducers
 * commute, so an iterator may take its coordinates in any order; what is asked is of the data. Where an iterator does nothing
 * but name elements, alone in an index, tensors permuted along these dimensions, all alike, give the results as they were, or
 * permuted along theirs. Anything else that is done with its coordinate (arithmetic, a condition, a value) is a refusal.
 */
import type { Span } from '../ast/diagnostic.ts'
import type { Buffer1, Iteration, Kernel1 } from '../ir/stage1.ts'
import { iterationsOf, writtenBy } from '../ir/stage1-tree.ts'
import type { Alike, PermutationRefusal, TensorDimension } from './permutation-classes.ts'
import { PermutationWalk } from './permutation-walk.ts'

/** A dimension of a tensor, and what permuting it does. */
export interface PermutableDimension extends TensorDimension {
  /** `null`: it may be permuted. */
  readonly refusal: PermutationRefusal | null
  /** Dimensions, of other tensors, that the same permutation has to be applied to; of results, that it is found applied to. */
  readonly alike: readonly TensorDimension[]
  /** Axes of the iterators that are alone in it, and in these. */
  readonly iterators: readonly string[]
  /** `kept`: results are the same; `permuted`: along their dimensions among `alike`, or along this one. */
  readonly results: 'kept' | 'permuted'
}

export interface PermutableIteration {
  readonly name: string
  readonly span?: Span | undefined
  /** Of the tensors that it reads or writes, iterations inside of it included. */
  readonly dimensions: readonly PermutableDimension[]
}

export interface PermutableDimensions {
  /** Through all iterations: those of a temporary may be permuted where each iteration that has it allows. */
  readonly kernel: readonly PermutableDimension[]
  /** One by one, outer before inner; results are what the iteration writes. */
  readonly iterations: readonly PermutableIteration[]
}

export function permutableDimensions(kernel: Kernel1): PermutableDimensions {
  const results = kernel.buffers.filter((b) => b.role === 'out' || b.role === 'inout').map((b) => b.name)
  return Object.freeze({
    kernel: dimensionsOf(kernel, null, new Set(results)),
    iterations: Object.freeze(
      iterationsOf(kernel.body).map((it) =>
        Object.freeze({
          name: it.name,
          ...(it.span ? { span: it.span } : {}),
          dimensions: dimensionsOf(kernel, it, writtenBy([it])),
        }),
      ),
    ),
  })
}

function dimensionsOf(
  kernel: Kernel1,
  only: Iteration | null,
  results: ReadonlySet<string>,
): readonly PermutableDimension[] {
  const walk = new PermutationWalk(kernel, only)
  walk.statements(kernel.body)
  const touched = walk.dimensions()
  const places = new Map(kernel.buffers.map((b, k) => [b.name, k]))
  return Object.freeze(
    kernel.buffers.flatMap((b) =>
      (touched.get(b.name) ?? []).map((c, d) => dimensionOf(b, d, c, results, places)),
    ),
  )
}

function dimensionOf(
  b: Buffer1,
  dimension: number,
  alike: Alike,
  results: ReadonlySet<string>,
  places: ReadonlyMap<string, number>,
): PermutableDimension {
  const { dims, iterators, refusal } = alike
  const own = dims.filter((x) => x.tensor === b.name && x.dimension !== dimension)
  const reason = `${own.map((x) => x.axis).join(' and ')} of ${b.name} would have to be permuted with it`
  const span = alike.tiedAt(b.name, dimension)
  const others = dims.filter((x) => x.tensor !== b.name)
  others.sort((x, y) => places.get(x.tensor)! - places.get(y.tensor)! || x.dimension - y.dimension)
  return Object.freeze({
    tensor: b.name,
    dimension,
    axis: b.axes[dimension]!,
    refusal: refusal ?? (own.length > 0 ? { reason, ...(span && { span }) } : null),
    alike: Object.freeze(others),
    iterators,
    results: dims.some((x) => results.has(x.tensor)) ? 'permuted' : 'kept',
  })
}
