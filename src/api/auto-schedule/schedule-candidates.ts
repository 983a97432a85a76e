/** Auto-scheduler: candidates for a kernel without a schedule (`sketch/index.ts`), compared by the cost model on bound data. */

import type { CostModel } from '../../cost-model/learned/model.ts'
import { installedPredictor } from '../../cost-model/predictor.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { someStmt } from '../../ir/statements/tree.ts'
import { sparseTensors } from '../../run/bind/binding-names.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Device } from '../../runtime/device.ts'
import type { PlainNest, SketchDevice, SketchTarget } from '../../sketch/index.ts'
import { Decisions, formsOf, scheduleNests, sketch } from '../../sketch/index.ts'
import { storedElements, type Tensor } from '../../storage/tensor.ts'
import { sizesOf } from '../inputs/bound-inputs.ts'
import { type AutoSchedulable, formatCandidates, isUneven } from './format-candidates.ts'
import { predictedTimes, statisticsFor } from './predicted-times.ts'
import { PLAIN, plainReason } from './software-adapter-schedule.ts'

export type CandidateTarget = Device | SketchDevice

/** Values under the names that the kernel's source declares. */
export interface AutoScheduleInputs {
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly params: Readonly<Record<string, number>>
}

/** Maximum number of candidates. Each takes some milliseconds to build and predict, and tens with tiles. */
const MOST_FORMS = 6
/**
 * Factor by which a candidate must be predicted faster than the heuristic default, because the heuristic is more reliable than small
 * differences.
 */
const SURE = 0.9
/**
 * Factor by which a candidate in another format must be predicted faster. It is lower than `SURE`, because of the cost of conversion, and
 * because predictions across formats are less accurate.
 */
const FAR_SURER = 0.7
/**
 * Factor for formats whose parts meet in atomic sums, which the model underestimates: on an H100, split long rows took 1.3 times the
 * declared format's time instead of the predicted 0.66 times. On WebGPU, where atomic float sums are loops, it was 2.7 times instead of
 * 0.13.
 */
const SUREST: Readonly<Record<SketchDevice, number>> = { cpu: 0, webgpu: 0, cuda: 0.6 }
/** Maximum number of cached sizes per kernel. */
const MOST_SIZES = 16

/**
 * Maximum number of elements of tensors with more than two dimensions, which are read completely (about one second); matrices are sampled.
 */
const MOST_ELEMENTS = 1 << 20

const isSoonKnown = (t: Tensor): boolean =>
  t.shape.length === 2 || (t.shape.length > 2 && storedElements(t) <= MOST_ELEMENTS)

/** Returns true if a kernel has no steps on loops, so that it is auto-scheduled. */
export const isUnscheduled = ({ onLoops }: Compilation): boolean => !onLoops

/** A candidate of the auto-scheduler: formats, and a partition of the loops. */
export interface ScheduleCandidate<K> {
  readonly kernel: K
  /** Decisions: a format other than the declared one, and the partition of loops; empty if there is only one candidate. */
  readonly text: string
  /** Predicted milliseconds on the bound data; `null` without a prediction. */
  readonly milliseconds: number | null
  /** Chip of the cost model; `null` if `milliseconds` is `null`. */
  readonly costModel: string | null
  /** Loop nests that have no legal schedule and run as by `parallel()`, with the reasons. */
  readonly plain: readonly PlainNest[]
  /** Rule that selected the candidate without a comparison. */
  readonly reason?: string | undefined
}

/** Legal candidates so far, the heuristic default first, and a generator of the others. */
interface Forms {
  readonly legal: ScheduleCandidate<unknown>[]
  readonly rest: Iterator<ScheduleCandidate<unknown>>
}
const known = new WeakMap<object, Map<string, Forms>>()

/**
 * Returns at most `most` legal candidates of a kernel without steps on loops, the heuristic default first; empty if all are rejected.
 * Results are cached.
 */
export function scheduleCandidates<K extends AutoSchedulable<K>>(
  kernel: K,
  device: SketchDevice,
  sizes: Readonly<Record<string, number>> = {},
  most = MOST_FORMS,
): readonly ScheduleCandidate<K>[] {
  const ofKernel = getOrAdd(known, kernel, () => new Map<string, Forms>())
  const key = JSON.stringify([device, sizes])
  if (!ofKernel.has(key) && ofKernel.size >= MOST_SIZES) ofKernel.delete(ofKernel.keys().next().value!)
  const forms = getOrAdd(ofKernel, key, () => ({ legal: [], rest: legalForms(kernel, { device, sizes }) }))
  while (forms.legal.length < most) {
    const next = forms.rest.next()
    if (next.done) break
    forms.legal.push(next.value)
  }
  return forms.legal.slice(0, most) as ScheduleCandidate<K>[]
}

function* legalForms<K extends AutoSchedulable<K>>(
  kernel: K,
  target: SketchTarget,
): Generator<ScheduleCandidate<K>> {
  let isDefault = true
  for (const { forms, values } of formsOf((d) => void sketch(kernel, target, d), MOST_FORMS)) {
    const made = scheduleNests(kernel, target, new Decisions(values, true))
    const text = forms.map((name) => `${name} = ${values[name]}`).join(', ')
    // Another form is of no use if one of its nests is rejected.
    if (isDefault || made.isComplete)
      yield { kernel: made.kernel, plain: made.plain, text, milliseconds: null, costModel: null }
    isDefault = false
  }
}

/** Sizes among the bound values, without scalars. */
function boundSizes(source: Kernel1, { tensors, params }: AutoScheduleInputs): Record<string, number> {
  const sizes = new Set(source.params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])))
  return Object.fromEntries(
    [...sizesOf(source, { tensors, params, resident: {} })].filter(([name]) => sizes.has(name)),
  )
}

/** The data and the model on which candidates are compared. */
interface Comparison {
  readonly model: CostModel
  readonly kind: SketchDevice
  readonly sizes: Readonly<Record<string, number>>
  readonly sparse: Readonly<Record<string, Tensor>>
}

/**
 * Returns candidates for the bound data, fastest prediction first; the heuristic default precedes candidates that are not clearly faster.
 * On GPUs, other formats are included if data are bound by coordinates and row lengths are very uneven. Only the heuristic default is
 * returned without a model or sparse tensors, or if they are too large to analyse.
 * @throws SptError `bind/…` if a value does not fit the kernel
 */
export function fastestCandidates<K extends AutoSchedulable<K>>(
  kernel: K,
  on: CandidateTarget,
  inputs: AutoScheduleInputs,
): readonly ScheduleCandidate<K>[] {
  const { source } = kernel.compilation
  const [kind, named] = typeof on === 'string' ? [on, undefined] : [on.kind, on]
  const sizes = boundSizes(source, inputs)
  const plain = plainReason(on, kernel, new Map(Object.entries(sizes)), inputs.tensors)
  if (plain !== null)
    return [
      {
        kernel: kernel.parallel(),
        text: PLAIN,
        milliseconds: null,
        costModel: null,
        plain: [],
        reason: plain,
      },
    ]
  const model = installedPredictor()?.selectionModel(kind, named) ?? null
  const sparse = sparseTensors(source, inputs.tensors)
  const isKnown = Object.values(sparse).some(isSoonKnown)
  const forms = scheduleCandidates(kernel, kind, sizes, model && isKnown ? MOST_FORMS : 1)
  if (!model || !isKnown || (kind === 'cpu' && forms.length < 2)) return forms
  const comparison: Comparison = { model, kind, sizes, sparse }
  const declared = inOrder(kernel, forms, comparison)
  const expected = declared[0]?.milliseconds ?? null
  if (expected === null || kind === 'cpu') return declared
  const others = inOtherFormats(kernel, comparison)
  const isFaster = ({ kernel: { compilation: c }, milliseconds }: ScheduleCandidate<K>): boolean =>
    milliseconds! < (hasAtomicSums(c) ? SUREST[kind] : FAR_SURER) * expected
  return [...others.filter(isFaster), ...declared, ...others.filter((f) => !isFaster(f))]
}

/** Sorts candidates by predicted time, with a bonus for the heuristic default. */
function inOrder<K extends AutoSchedulable<K>>(
  kernel: K,
  forms: readonly ScheduleCandidate<K>[],
  on: Comparison,
): readonly ScheduleCandidate<K>[] {
  const times = timesOf(
    kernel,
    on,
    forms.map((f) => f.kernel.compilation),
  )
  const predicted = forms.map((f, k) => {
    const milliseconds = times[k] ?? null
    return { ...f, milliseconds, costModel: milliseconds === null ? null : on.model.chip }
  })
  if (!predicted[0] || predicted[0].milliseconds === null) return predicted
  const rank = predicted.map(
    ({ milliseconds }, k) => (milliseconds ?? Number.POSITIVE_INFINITY) * (k === 0 ? SURE : 1),
  )
  const order = [...predicted.keys()].sort((a, b) => (rank[a] === rank[b] ? 0 : rank[a]! - rank[b]!))
  return order.map((k) => predicted[k]!)
}

const timesOf = <K extends AutoSchedulable<K>>(
  { compilation: { source } }: K,
  { model, kind, sizes, sparse }: Comparison,
  compilations: readonly Compilation[],
): readonly (number | null)[] =>
  predictedTimes(model, kind, source, sparse, new Map(Object.entries(sizes)), compilations)

/** Candidates that store the only sparse tensor in other formats, fastest first. */
function inOtherFormats<K extends AutoSchedulable<K>>(
  kernel: K,
  on: Comparison,
): readonly ScheduleCandidate<K>[] {
  const { model, kind, sizes, sparse } = on
  const { source } = kernel.compilation
  const [only, ...more] = Object.entries(sparse)
  if (!only || more.length > 0 || only[1].kind !== 'coords' || only[1].shape.length !== 2) return []
  const { statistics, remembered } = statisticsFor(source, sparse)
  if (!isUneven(statistics)) return []
  const key = JSON.stringify([kind, sizes])
  const before = remembered.get(kernel) as Remembered<K> | undefined
  if (before?.model === model && before.key === key) return before.forms
  const [name] = only
  const found = formatCandidates(
    kernel,
    name,
    { device: kind, sizes },
    (c) => timesOf(kernel, on, [c])[0] ?? null,
  )
  const forms = found
    .map((f) => ({ ...f, costModel: model.chip }))
    .sort((a, b) => a.milliseconds - b.milliseconds)
  remembered.set(kernel, { model, key, forms })
  return forms
}

interface Remembered<K> {
  readonly model: CostModel
  readonly key: string
  readonly forms: readonly ScheduleCandidate<K>[]
}

export const keepsDeclaredFormats = <K extends AutoSchedulable<K>>(
  kernel: K,
  form: ScheduleCandidate<K>,
): boolean => form.kernel.compilation.kernel.reformats.length === kernel.compilation.kernel.reformats.length

const hasAtomicSums = ({ loops }: Compilation): boolean =>
  someStmt(loops.body, (s) => s.kind === 'reduce' && s.atomic)
