/**
 * Schedules derived from the shape of a kernel's loop nests: roles of loops for the result, dependencies and writes (the
 * sketches of Ansor, Zheng et al., OSDI 2020, over the loops of formats). Independent of operators and formats. Each sketch
 * is a list of decisions, each with a heuristic default, and the ordinary steps that follow from them.
 */
import type { Kernel2 } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import type { Decisions } from './decisions.ts'
import { Draft, type Schedulable } from './draft.ts'
import { fusedName, fusions } from './fused-axes.ts'
import { parallel } from './parallel.ts'
import { nestNaming } from './part-groups.ts'
import { sequential } from './sequential.ts'
import { type NestShape, nestShapes } from './strands.ts'

export { type Decided, Decisions, openIn } from './decisions.ts'
export { Draft, type Schedulable } from './draft.ts'
export { formsOf, nearOf } from './shortlist.ts'

/** The kinds of devices that sketches are for. */
export type SketchDevice = 'cpu' | 'webgpu' | 'cuda'

export interface SketchTarget {
  readonly device: SketchDevice
  /** Sizes that the schedule is for, as far as they are known: it may require them, or what they are multiples of. */
  readonly sizes?: Readonly<Record<string, number>> | undefined
}

/** Threads of a block that every such device has. */
const THREADS: Readonly<Record<SketchDevice, number>> = { cpu: 1, webgpu: 256, cuda: 1024 }

/** Asked again with every decision. */
const shapesOf = remembered((of: { readonly kernel: Kernel1; readonly loops: Kernel2 }) =>
  nestShapes(of.loops, nestNaming(of.kernel)),
)

/** Kernels with axes fused, by which they are. */
const fused = new WeakMap<object, Map<string, unknown>>()

/** A kernel that the decisions on coordinates lead to, and the steps on its loops that the others do. */
export interface Sketched<K extends Schedulable<K>> {
  readonly kernel: K
  readonly steps: (draft: Draft<K>) => void
}

/**
 * The sketch given by the decisions, for a kernel without loop steps. Loop steps are planned but not applied.
 * @throws SptError if a step on coordinates is rejected
 */
export function sketch<K extends Schedulable<K>>(base: K, target: SketchTarget, d: Decisions): Sketched<K> {
  const { device } = target
  const sizes = new Map(Object.entries(target.sizes ?? {}))
  // Nests that bring schedules of their own for the device are left to these.
  const shapes = ({ compilation }: K): readonly NestShape[] => {
    const own = (compilation.loops.defaults ?? []).filter((n) => (n.alone === true) === (device === 'cpu'))
    const brought = new Set(own.map((n) => n.nest))
    return shapesOf(compilation).filter((s) => !brought.has(s.name))
  }
  if (device === 'cpu')
    return { kernel: base, steps: sequential(shapes(base), base.compilation.loops, d, sizes) }
  const { kernel: coordinates } = base.compilation
  const together = fusions(coordinates, nestNaming(coordinates), d)
  const kernel = withFused(base, together)
  const around = {
    decisions: d,
    threads: THREADS[device],
    apart: device === 'cuda',
    sizes,
  }
  return { kernel, steps: parallel(shapes(kernel), kernel.compilation.loops, around) }
}

function withFused<K extends Schedulable<K>>(base: K, together: readonly (readonly string[])[]): K {
  if (together.length === 0) return base
  const known = fused.get(base) ?? new Map<string, unknown>()
  fused.set(base, known)
  const key = together.map((x) => x.join()).join(' ')
  const before = known.get(key)
  if (before !== undefined) return before as K
  const made = together.reduce((k, loops) => {
    const into = fusedName(k.compilation.kernel, loops)
    return k.apply([{ stage: 1, step: { kind: 'fuse', loops, into } }])
  }, base)
  known.set(key, made)
  return made
}

/** The kernel under a sketch. @throws SptError where a step is refused */
export function sketched<K extends Schedulable<K>>(base: K, target: SketchTarget, d: Decisions): K {
  const { kernel, steps } = sketch(base, target, d)
  const draft = new Draft<K>(kernel)
  steps(draft)
  return draft.kernel
}
