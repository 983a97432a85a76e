/**
 * Dimensions of tensors that may be permuted (PIT axes; Zheng et al., SOSP 2023). Iterations are unordered and reducers
 * commute, so an iterator may take its coordinates in any order, and only the data matter. If an iterator only names
 * elements, alone in an index, then tensors that are permuted identically along these dimensions give the same results,
 * or results permuted along their dimensions. Any other use of its coordinate (arithmetic, a condition, a value)
 * forbids that.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { iterationsOf, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import type { Alike, PermutationObstacle, TensorDimension } from './permutation-classes.ts'
import { permutationWalk } from './permutation-walk.ts'

/** A dimension of a tensor, and the effect of permuting it. */
export interface PermutableDimension extends TensorDimension {
  /** The reason why the dimension may not be permuted; null if it may be. */
  readonly obstacle: PermutationObstacle | null
  /** Dimensions of other tensors that need the same permutation. Those of results come out permuted. */
  readonly linkedDimensions: readonly TensorDimension[]
  /** Axes of the iterators that are alone in the index of this dimension, and of those in `alike`. */
  readonly iterators: readonly string[]
  /**
   * The effect on results: `kept`: results do not change; `permuted`: they are permuted along their dimensions among
   * `alike`, or along this one.
   */
  readonly results: 'kept' | 'permuted'
}

export interface PermutableIteration {
  readonly name: string
  readonly span?: Span | undefined
  /** The dimensions of the tensors that the iteration, or an iteration inside of it, reads or writes. */
  readonly dimensions: readonly PermutableDimension[]
}

export interface PermutableDimensions {
  /**
   * The dimensions in the whole kernel. Dimensions of a temporary may be permuted if each iteration with the temporary
   * permits it.
   */
  readonly kernel: readonly PermutableDimension[]
  /** The dimensions in each iteration, outer before inner; the results are the tensors that the iteration writes. */
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
          ...(it.span && { span: it.span }),
          dimensions: dimensionsOf(kernel, it, writtenBuffers1([it])),
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
  const walk = permutationWalk(kernel, only)
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
  const { dims, iterators, refusal: obstacle } = alike
  const own = dims.filter((x) => x.tensor === b.name && x.dimension !== dimension)
  const reason = `${own.map((x) => x.axis).join(' and ')} of ${b.name} would have to be permuted with it`
  const span = alike.tiedAt(b.name, dimension)
  const others = dims.filter((x) => x.tensor !== b.name)
  others.sort((x, y) => places.get(x.tensor)! - places.get(y.tensor)! || x.dimension - y.dimension)
  return Object.freeze({
    tensor: b.name,
    dimension,
    axis: b.axes[dimension]!,
    obstacle: obstacle ?? (own.length > 0 ? { reason, ...(span && { span }) } : null),
    linkedDimensions: Object.freeze(others),
    iterators,
    results: dims.some((x) => results.has(x.tensor)) ? 'permuted' : 'kept',
  })
}
