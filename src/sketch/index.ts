/**
 * Schedules derived from the shape of a kernel's loop nests: roles of loops for the result, dependencies and writes (the
 * sketches of Ansor, Zheng et al., OSDI 2020, over the loops of formats). Independent of operators and formats. Each sketch
 * is a list of decisions, each with a heuristic default, and the ordinary steps that follow from them.
 */

import { resultOrError, SptError } from '../ast/diagnostics/diagnostic.ts'
import { isStored, parentOf, segmentSize } from '../ir/coordinates/axis.ts'
import { builderDefaults } from '../ir/coordinates/runtime-lists.ts'
import type { Iteration, Kernel1 } from '../ir/coordinates/stage1.ts'
import { iterationsOf } from '../ir/coordinates/stage1-tree.ts'
import { unusedName } from '../ir/expressions/bound-names.ts'
import { getOrAdd, memoize } from '../ir/memoize.ts'
import type { Kernel2 } from '../ir/statements/loops.ts'
import { Decisions, Draft, type PartialPoint, type Schedulable } from './draft.ts'
import { applyChanges, inlinings, rowFusions } from './fusion.ts'
import { type NestPlans, type PlainNest, planNests, reasonOf } from './nest-plans.ts'
import { parallelRules } from './parallel.ts'
import { reductionSplits } from './reduction-splits.ts'
import { sequentialRules } from './running-sums.ts'
import { type NestNames, type NestShape, nestNaming, nestShapes } from './strands.ts'
import type { Memo } from './trials.ts'

export { Decisions, nextDecision, type PartialPoint, type Schedulable } from './draft.ts'
export type { PlainNest } from './nest-plans.ts'

/** Kinds of devices that have sketches. */
export type SketchDevice = 'cpu' | 'webgpu' | 'cuda'

export interface SketchTarget {
  readonly device: SketchDevice
  /** Sizes for which the schedule is specialised: it may require them, or divisors of them. */
  readonly sizes?: Readonly<Record<string, number>> | undefined
}

/** Minimum number of threads per block that every such device supports. */
const MAX_THREADS: Readonly<Record<SketchDevice, number>> = { cpu: 1, webgpu: 256, cuda: 1024 }

/** Memoised, because a sketch is replayed for every decision. */
const shapesOf = memoize((compilation: { readonly kernel: Kernel1; readonly loops: Kernel2 }) =>
  nestShapes(compilation.loops, nestNaming(compilation.kernel)),
)

/** Kernels with fused axes, by base kernel and fusions. */
const kernelsWithFusedAxes = new WeakMap<object, Map<string, unknown>>()

/** The kernel after the decisions on coordinates, with the plans of its nests. */
interface SketchResult<K extends Schedulable<K>> {
  readonly kernel: K
  readonly plans: NestPlans
}

/**
 * The sketch given by the decisions, for a kernel without loop steps. Loop steps are planned but not applied.
 * @throws SptError if a step on coordinates is rejected
 */
export function sketch<K extends Schedulable<K>>(
  base: K,
  target: SketchTarget,
  d: Decisions,
): SketchResult<K> {
  const { device } = target
  const sizes = new Map(Object.entries(target.sizes ?? {}))
  const isSequential = device === 'cpu'
  const { kernel: coordinates } = base.compilation
  const groups = isSequential ? [] : chooseFusions(coordinates, nestNaming(coordinates), d)
  // Nests with a default schedule of their own for the device are skipped.
  const shapesIn = ({ compilation }: K): readonly NestShape[] => {
    const defaults = builderDefaults(compilation.loops).filter(
      (n) => (n.singleThread === true) === isSequential,
    )
    const scheduled = new Set(defaults.map((n) => n.nest))
    return shapesOf(compilation).filter((s) => !scheduled.has(s.name))
  }
  const withAxes = fuseAxes(base, groups)
  const changes = isSequential ? [] : [inlinings, rowFusions, reductionSplits]
  const kernel = changes.reduce(
    (k, change) => applyChanges(k, change(shapesIn(k), k.compilation.loops, sizes), d),
    withAxes,
  )
  const { loops } = kernel.compilation
  const shapes = shapesIn(kernel)
  const context = { decisions: d, threads: MAX_THREADS[device], canDiverge: device === 'cuda', sizes }
  const rules = isSequential ? sequentialRules : parallelRules
  return { kernel, plans: planNests(shapes, loops, context, rules, memoOf(kernel, target)) }
}

/** Results of trials, by kernel, then by target and key. */
const trialResults = new WeakMap<object, Map<string, unknown>>()

function memoOf<K extends Schedulable<K>>(kernel: K, target: SketchTarget): Memo {
  const on = JSON.stringify([target.device, target.sizes])
  const known = getOrAdd(trialResults, kernel, () => new Map()) as Map<string, never>
  return (key, make) => getOrAdd(known, `${on} ${key}`, () => make(new Draft<K>(kernel) as never) as never)
}

function fuseAxes<K extends Schedulable<K>>(base: K, groups: readonly (readonly string[])[]): K {
  if (groups.length === 0) return base
  const cache = getOrAdd(kernelsWithFusedAxes, base, () => new Map()) as Map<string, K>
  return getOrAdd(cache, groups.map((x) => x.join()).join(' '), () =>
    groups.reduce((k, loops) => {
      const name = fusedName(k.compilation.kernel, loops)
      return k.apply([{ stage: 1, step: { kind: 'fuse', loops, into: name } }])
    }, base),
  )
}

/** The kernel under a sketch. @throws SptError if a step is rejected */
export function applySketch<K extends Schedulable<K>>(base: K, target: SketchTarget, d: Decisions): K {
  const { kernel, plans } = sketch(base, target, d)
  const draft = new Draft<K>(kernel)
  plans.apply(draft)
  return draft.kernel
}

/** The kernel under a sketch, in which nests with a rejected step stay plain. @throws SptError as `sketch` */
export function scheduleNests<K extends Schedulable<K>>(
  base: K,
  target: SketchTarget,
  d: Decisions,
): { readonly kernel: K; readonly plain: readonly PlainNest[]; readonly isComplete: boolean } {
  const { kernel, plans } = sketch(base, target, d)
  const draft = new Draft<K>(kernel)
  const rejected: PlainNest[] = []
  plans.apply(draft, (nest, error) => rejected.push({ nest, reason: reasonOf(error) }))
  return {
    kernel: draft.kernel,
    plain: [...plans.plain, ...rejected],
    isComplete: rejected.length === 0,
  }
}

// Points that are likely the best without data: the default of each form of a space, and neighbours.

/** Maximum number of forms; each is a kernel to compile. */
const MAX_FORMS = 16

/** Replays a rule with defaults; `undefined` if a step on coordinates is rejected. */
function replay(rule: (d: Decisions) => void, point: PartialPoint): Decisions | undefined {
  const d = new Decisions(point, true)
  return resultOrError(() => rule(d)) instanceof SptError ? undefined : d
}

/** The heuristic default, then its variants for the other partitions of loops (forms), at most `maxForms`. */
export function* formsOf(rule: (d: Decisions) => void, maxForms = MAX_FORMS): Generator<Decisions> {
  let count = 0
  const queue: { readonly point: PartialPoint; readonly first: number }[] = [{ point: {}, first: 0 }]
  for (let entry = queue.shift(); entry && count < maxForms; entry = queue.shift()) {
    const d = replay(rule, entry.point)
    if (!d) continue
    count++
    yield d
    const prefix: Record<string, number | string> = {}
    for (const [k, name] of d.forms.entries()) {
      const value = d.values[name]!
      if (k >= entry.first)
        for (const other of d.requests.find((a) => a.name === name)!.values)
          if (other !== value) queue.push({ point: { ...prefix, [name]: other }, first: k + 1 })
      prefix[name] = value
    }
  }
}

/** Points of the same form with one other decision: adjacent values if ordered, otherwise any others. */
export function neighboursOf(rule: (d: Decisions) => void, point: PartialPoint): readonly PartialPoint[] {
  const d = replay(rule, point)
  if (!d) return []
  return d.requests.flatMap(({ name, values, ordered }) => {
    if (d.forms.includes(name)) return []
    const index = values.indexOf(d.values[name]!)
    const alternatives = ordered
      ? [values[index - 1], values[index + 1]]
      : values.filter((_, k) => k !== index)
    return alternatives.flatMap((v): readonly PartialPoint[] => {
      const neighbour = v === undefined ? undefined : replay(rule, { ...point, [name]: v })
      return neighbour ? [neighbour.values] : []
    })
  })
}

// Fuses stored axes into one loop over all their positions, which balances the elements of segments of any length.

/** Iterators to fuse, qualified by their iteration, from the outermost. */
type Fusion = readonly string[]

/** Chooses, for each top-level iteration, the number of outermost iterators to fuse. */
function chooseFusions(
  kernel: Kernel1,
  namesOf: (nest: string) => NestNames,
  d: Decisions,
): readonly Fusion[] {
  return kernel.body.flatMap((s): Fusion[] => {
    if (s.kind !== 'iterate' || s.body.some((b) => b.kind === 'iterate')) return []
    if (builderDefaults(kernel).some((n) => n.nest === s.name)) return []
    const maxCount = chainLength(s, kernel)
    if (maxCount < 2) return []
    const counts = Array.from({ length: maxCount }, (_, k) => k + 1)
    const n = d.form(`${namesOf(s.name).prefix}.fused`, counts, guessCount(s, maxCount))
    return n > 1 ? [s.iters.slice(0, n).map((x) => `${s.name}.${x.name}`)] : []
  })
}

/** Number of leading iterators over a chain of axes from a root, each in segments of the previous one. */
function chainLength(it: Iteration, kernel: Kernel1): number {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const end = it.iters.findIndex((x, k) => {
    const axis = axes.get(x.axis)
    if (!axis || !isStored(axis)) return true
    const size = segmentSize(axis)
    const isSingle = k > 0 && size?.kind === 'const' && size.value === 1
    return isSingle || parentOf(axis) !== (k === 0 ? null : it.iters[k - 1]!.axis)
  })
  return end < 0 ? it.iters.length : end
}

/** Number of axes of a matrix; trees with more axes have few, uneven segments at the root. */
const MATRIX = 2

/**
 * Heuristic default of the number of fused iterators: all spatial ones before the first reduction. For trees deeper
 * than a matrix with a reduction, the whole chain, because every stored element then counts equally even if the roots
 * are few.
 */
function guessCount({ iters }: Iteration, maxCount: number): number {
  const combines = iters.slice(0, maxCount).some((x) => x.kind === 'R')
  if (maxCount > MATRIX && combines) return maxCount
  const first = iters[0]!.kind === 'R' ? iters.findIndex((x) => x.kind !== 'R') : 0
  const firstSum = iters.findIndex((x, k) => k > first && x.kind === 'R')
  const spatialCount = firstSum < 0 ? iters.length : firstSum
  return Math.max(1, first < 0 || first >= maxCount ? 1 : Math.min(maxCount, spatialCount))
}

/** Unused name for the fusion of several iterators. */
function fusedName({ axes, params, buffers, body }: Kernel1, loops: Fusion): string {
  const iters = iterationsOf(body).flatMap((it) => it.iters)
  const usedNames = new Set([...axes, ...params, ...buffers, ...iters].map((x) => x.name))
  const names = loops.map((l) => l.slice(l.indexOf('.') + 1))
  return unusedName(names.join(names.every((n) => n.length === 1) ? '' : '_'), (n) => usedNames.has(n))
}
