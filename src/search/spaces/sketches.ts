/** The auto-scheduler: formats and sketches of a kernel as a space, derived from its loop nests. */

import type { SelectionContext, SelectionInputs } from '../../api/dispatch/device-facts.ts'
import { kindOf } from '../../api/dispatch/device-facts.ts'
import { checkSizes, expectArgument, expectOptions, isRecord } from '../../api/inputs/argument-checks.ts'
import { declaredOf, sizesOf, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import { expectKernel, type Kernel } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { SketchDevice, SketchTarget } from '../../sketch/index.ts'
import { applySketch, Decisions, formsOf, neighboursOf, nextDecision, sketch } from '../../sketch/index.ts'
import type { KernelSpace, OpenDecision, Point } from '../types.ts'
import { formatChoices } from './format-choices.ts'
import { checkPoint } from './points.ts'

/** Effort of formatting a kernel and analysing its loop nests (some milliseconds), in values of decisions. */
const EFFORT = 40

export interface SketchOptions {
  readonly device: SketchDevice
  /** Sizes of the schedules by name, which may require these or their divisors; default: any size. */
  readonly sizes?: Readonly<Record<string, number>>
  /**
   * Formats to choose among for each sparse tensor, as after `as`: `{ A: ['csr', 'bsr(8)'] }`; `''` keeps the declared
   * format. Other tensors keep theirs. Default: the formats of the kernel's program that fit.
   */
  readonly formats?: Readonly<Record<string, readonly string[]>>
}

export interface SketchSpace extends KernelSpace<Kernel> {
  /** The point that the rules hold for the best without data. */
  readonly defaultPoint: Point
  /** The heuristic default, and its variants for every other way to partition the loops: fusion, sketch, carry-out. */
  shortlist(): readonly Point[]
  /** The points of the same form with one other decision: numbers on both sides, or other names. */
  variants(point: Point): readonly Point[]
}

/**
 * Space of schedules derived from a kernel's loops: the format of each sparse tensor, then for each nest the partition of its
 * loops, tile sizes, vectors, unrolling and register reuse. For kernels without loop steps.
 * @throws SptError `api/argument`; `search/has-schedule` if the kernel has loop steps
 */
export function sketches(kernel: Kernel, options: SketchOptions): SketchSpace {
  expectKernel(kernel)
  expectOptions('sketches', options, ['device', 'sizes', 'formats'])
  const { device, sizes } = options
  const target: SketchTarget = { device, sizes }
  expectArgument(DEVICE_KINDS.includes(device), 'device', device, DEVICE_KINDS.join(', '))
  checkSizes(kernel.source, sizes)
  if (kernel.compilation.onLoops)
    failWith('search/has-schedule', `${kernel.name} has steps on loops already`, {
      expected: 'a kernel without a schedule, or with steps on coordinates alone',
      hint: 'take the sketches of the kernel before those steps',
    })
  const formats = formatChoices(kernel, options.formats)
  const stored = new Map<string, Kernel>()
  const base = (d: Decisions): Kernel => {
    const chosen = formats.map((f) => f.decide(d))
    return getOrAdd(stored, chosen.join('\n'), () =>
      formats.reduce((k, f, n) => (chosen[n] === '' ? k : k.as(f.buffer, chosen[n]!)), kernel),
    )
  }
  const rule = (d: Decisions): void => void sketch(base(d), target, d)
  // Asked for: formats are tried for it.
  let guess: Point | undefined
  const guessed = (): Point => {
    const d = new Decisions(null)
    resultOrError(() => rule(d))
    return d.values
  }
  const space: SketchSpace = {
    get defaultPoint() {
      guess ??= guessed()
      return guess
    },
    name: kernel.name,
    shortlist: () => [...formsOf(rule)].map((d) => d.values),
    variants: (point) => neighboursOf(rule, checkPoint(space, point)),
    // If a coordinate step is rejected, no decision follows: the point is rejected when it is applied.
    next(partial: Point): OpenDecision | null {
      expectArgument(isRecord(partial), 'a point', partial, 'values by decision')
      const open = resultOrError(() => nextDecision(partial, rule))
      if (open instanceof SptError || !open) return null
      return { ...open, considered: open.values.length + EFFORT }
    },
    kernel(point: Point): Kernel {
      const d = new Decisions(checkPoint(space, point))
      return applySketch(base(d), target, d)
    },
  }
  origins.set(space, { base: kernel, options })
  return space
}

/** Kernel and options from which a space of sketches was made; undefined for other spaces. */
export const sketchOrigin = (space: object): SketchOrigin | undefined => origins.get(space)

const origins = new WeakMap<object, SketchOrigin>()

interface SketchOrigin {
  readonly base: Kernel
  readonly options: SketchOptions
}

// The default search space.

/** The kernel's `cpu_space` or `gpu_space`, otherwise its sketches. @throws SptError as both */
export async function usualSpace(
  kernel: Kernel,
  on: SelectionContext,
  inputs: SelectionInputs,
): Promise<KernelSpace<Kernel>> {
  const kind = kindOf(on)
  const own = kind === 'cpu' ? 'cpu_space' : 'gpu_space'
  return kernel.spaces.includes(own)
    ? kernel.space(own).bind(on, ...flatInputs(inputs))
    : sketchesFor(kernel, on, inputs)
}

/** Sketches for the sizes of the bound data. @throws SptError as `sketches` */
export function sketchesFor(
  kernel: Kernel,
  on: SelectionContext,
  inputs: SelectionInputs,
): KernelSpace<Kernel> {
  const { source } = kernel
  const names = new Set(source.params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])))
  const { tensors = {}, params = {}, resident = {} } = inputs
  const known = sizesOf(source, {
    ...valuesIn(source, { tensors: declaredOf(source, tensors, kernel.allFormatInputs), params }),
    resident,
  })
  const sizes = Object.fromEntries([...known].filter(([name]) => names.has(name)))
  return sketches(kernel, { device: kindOf(on), sizes })
}
