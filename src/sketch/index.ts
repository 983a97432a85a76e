/**
 * Schedules derived from the shape of a kernel's loop nests: roles of loops for the result, dependencies and writes (the
 * sketches of Ansor, Zheng et al., OSDI 2020, over the loops of formats). Independent of operators and formats. Each sketch
 * is a list of decisions, each with a heuristic default, and the ordinary steps that follow from them.
 */

import { resultOrError, SptError } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { getOrAdd, memoize } from '../ir/memoize.ts'
import type { Kernel2 } from '../ir/statements/loops.ts'
import { Decisions, type PartialPoint } from './decisions.ts'
import { Draft, type Schedulable } from './draft.ts'
import { chooseFusions, fusedName } from './fused-axes.ts'
import { planParallel } from './parallel.ts'
import { planSequential } from './running-sums.ts'
import { type NestShape, nestNaming, nestShapes } from './strands.ts'

export { Decisions, nextDecision, type PartialPoint } from './decisions.ts'
export { Draft, type Schedulable } from './draft.ts'

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
const fusedKernels = new WeakMap<object, Map<string, unknown>>()

/** The kernel after the decisions on coordinates, with the loop steps that follow from the other decisions. */
interface SketchResult<K extends Schedulable<K>> {
  readonly kernel: K
  readonly steps: (draft: Draft<K>) => void
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
  // Nests with a default schedule of their own for the device are skipped.
  const shapes = ({ compilation }: K): readonly NestShape[] => {
    const defaults = (compilation.loops.defaults ?? []).filter(
      (n) => (n.singleThread === true) === (device === 'cpu'),
    )
    const scheduled = new Set(defaults.map((n) => n.nest))
    return shapesOf(compilation).filter((s) => !scheduled.has(s.name))
  }
  if (device === 'cpu')
    return { kernel: base, steps: planSequential(shapes(base), base.compilation.loops, d, sizes) }
  const { kernel: coordinates } = base.compilation
  const groups = chooseFusions(coordinates, nestNaming(coordinates), d)
  const kernel = fuseAxes(base, groups)
  const context = { decisions: d, threads: MAX_THREADS[device], canDiverge: device === 'cuda', sizes }
  return { kernel, steps: planParallel(shapes(kernel), kernel.compilation.loops, context) }
}

function fuseAxes<K extends Schedulable<K>>(base: K, groups: readonly (readonly string[])[]): K {
  if (groups.length === 0) return base
  const cache = getOrAdd(fusedKernels, base, () => new Map()) as Map<string, K>
  return getOrAdd(cache, groups.map((x) => x.join()).join(' '), () =>
    groups.reduce((k, loops) => {
      const name = fusedName(k.compilation.kernel, loops)
      return k.apply([{ stage: 1, step: { kind: 'fuse', loops, into: name } }])
    }, base),
  )
}

/** The kernel under a sketch. @throws SptError if a step is rejected */
export function applySketch<K extends Schedulable<K>>(base: K, target: SketchTarget, d: Decisions): K {
  const { kernel, steps } = sketch(base, target, d)
  const draft = new Draft<K>(kernel)
  steps(draft)
  return draft.kernel
}

// Points that are likely the best without data: the heuristic default of each form of a space, and neighbours
// of a point.

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

/**
 * Points with the form of `point` that differ in one decision: neighbouring values if they are ordered, otherwise any
 * other value.
 */
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
