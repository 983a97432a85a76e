/**
 * Auto-scheduler: candidates for a kernel without a schedule (`search/sketch/shortlist.ts`), compared by the cost model on bound
 * data.
 */
import { orRefused, SptError } from '../ast/diagnostic.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { someStmt } from '../ir/tree.ts'
import type { Compilation } from '../run/compile.ts'
import type { Device } from '../runtime/device.ts'
import { sparseTensors } from '../search/model/prediction.ts'
import { type CostModel, selectionModel } from '../search/model/trained-models.ts'
import {
  applySketch,
  Decisions,
  formsOf,
  type SketchDevice,
  type SketchTarget,
  sketch,
} from '../search/sketch/index.ts'
import { storedElements, type Tensor } from '../storage/tensor.ts'
import { sizesOf } from './bound-values.ts'
import { type AutoSchedulable, formatCandidates, isUneven } from './format-candidates.ts'
import { predictedTimes, statisticsFor } from './predicted-times.ts'
import { PLAIN, plainReason } from './software-adapter-schedule.ts'

/** A device, or a kind of device. */
export type CandidateTarget = Device | SketchDevice

/** Values under the names that the kernel's text declares. */
export interface AutoScheduleInputs {
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly params: Readonly<Record<string, number>>
}

/** Each is made, and looked at by the model: some milliseconds, tens where it has tiles. */
const MOST_FORMS = 6
/** How much less than the guess another form has to be expected to take: rules are right oftener than small differences. */
const SURE = 0.9
/** The same of what another format is expected to take: it is brought there once, and the model is surer of one format than of several. */
const FAR_SURER = 0.7
/**
 * And where its parts meet in sums that are atomic, of which the model expects too little (H100, long rows split: 1.3 times the
 * time of the declared format where .66 was expected; on WebGPU, where they are loops, 2.7 times for .13).
 */
const SUREST: Readonly<Record<SketchDevice, number>> = { cpu: 0, webgpu: 0, cuda: 0.6 }
/** Sizes whose forms are kept of a kernel: data of other sizes come one after the other. */
const MOST_SIZES = 16

/** Elements of a tensor of more than two dimensions that are looked at: all of them, in a second, where of a matrix samples do. */
const MOST_ELEMENTS = 1 << 20

const isSoonKnown = (t: Tensor): boolean =>
  t.shape.length === 2 || (t.shape.length > 2 && storedElements(t) <= MOST_ELEMENTS)

/** Beyond which nests are too many to look at each: parts of a format by the hundred. */
const MOST_NESTS = 64

/** Whether a kernel's loops have no steps, and are not too many to be looked at. */
export const isUnscheduled = ({ onLoops, loops }: Compilation): boolean =>
  !onLoops && loops.body.length <= MOST_NESTS

/** A candidate of the auto-scheduler: formats, and a partition of the loops. */
export interface ScheduleCandidate<K> {
  readonly kernel: K
  /** Decisions: a format other than the declared one, and the partition of loops; empty if there is only one candidate. */
  readonly text: string
  /** Predicted milliseconds on the bound data; `null` without a prediction. */
  readonly milliseconds: number | null
  /** Chip of the cost model; `null` as `milliseconds`. */
  readonly costModel: string | null
  /** Rule that selected the candidate without a comparison. */
  readonly reason?: string | undefined
}

/** What is legal of the forms that have been looked at, the best guess first, and those that have not. */
interface Forms {
  readonly legal: ScheduleCandidate<unknown>[]
  readonly rest: Iterator<ScheduleCandidate<unknown>>
}
const known = new WeakMap<object, Map<string, Forms>>()

/**
 * Legal forms of a kernel that has no steps on loops, `most` at most, the best guess first; none where all are refused. Those
 * that are asked for again are the same.
 */
export function scheduleCandidates<K extends AutoSchedulable<K>>(
  kernel: K,
  device: SketchDevice,
  sizes: Readonly<Record<string, number>> = {},
  most = MOST_FORMS,
): readonly ScheduleCandidate<K>[] {
  const ofKernel = known.get(kernel) ?? new Map<string, Forms>()
  known.set(kernel, ofKernel)
  const key = JSON.stringify([device, sizes])
  const forms = ofKernel.get(key) ?? { legal: [], rest: legalForms(kernel, { device, sizes }) }
  if (!ofKernel.has(key) && ofKernel.size >= MOST_SIZES) ofKernel.delete(ofKernel.keys().next().value!)
  ofKernel.set(key, forms)
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
  for (const { forms, values: taken } of formsOf((d) => void sketch(kernel, target, d), MOST_FORMS)) {
    const made = orRefused(() => applySketch(kernel, target, new Decisions(taken, true)))
    const text = forms.map((name) => `${name} = ${taken[name]}`).join(', ')
    if (!(made instanceof SptError)) yield { kernel: made, text, milliseconds: null, costModel: null }
  }
}

/** Sizes among what is bound: scalars are none. */
function boundSizes(source: Kernel1, { tensors, params }: AutoScheduleInputs): Record<string, number> {
  const sizes = new Set(source.params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])))
  return Object.fromEntries(
    [...sizesOf(source, { tensors, params, resident: {} })].filter(([name]) => sizes.has(name)),
  )
}

/** What forms are compared on. */
interface Comparison {
  readonly model: CostModel
  readonly kind: SketchDevice
  readonly sizes: Readonly<Record<string, number>>
  readonly sparse: Readonly<Record<string, Tensor>>
}

/**
 * Forms for the sizes of what is bound, the best guess first, and before it those that the cost model of the device expects to
 * be faster; on devices with threads in other formats too, where data come by coordinates and rows are of very different lengths.
 * The guess alone where there is no model, and where nothing that is bound has structure, or what has is more than is soon looked at.
 * @throws SptError `bind/…` of what does not fit the kernel
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
    return [{ kernel: kernel.parallel(), text: PLAIN, milliseconds: null, costModel: null, reason: plain }]
  const model = selectionModel(kind, named)
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

/** As they are expected to take, but that the guess is first where none is far faster. */
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
  const told = forms.map((f, k) => {
    const milliseconds = times[k] ?? null
    return { ...f, milliseconds, costModel: milliseconds === null ? null : on.model.chip }
  })
  if (!told[0] || told[0].milliseconds === null) return told
  const rank = told.map(
    ({ milliseconds }, k) => (milliseconds ?? Number.POSITIVE_INFINITY) * (k === 0 ? SURE : 1),
  )
  const order = [...told.keys()].sort((a, b) => (rank[a] === rank[b] ? 0 : rank[a]! - rank[b]!))
  return order.map((k) => told[k]!)
}

const timesOf = <K extends AutoSchedulable<K>>(
  { compilation: { source } }: K,
  { model, kind, sizes, sparse }: Comparison,
  compilations: readonly Compilation[],
): readonly (number | null)[] =>
  predictedTimes(model, kind, source, sparse, new Map(Object.entries(sizes)), compilations)

/** Of the one tensor with structure, the fastest first. */
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

/** Of a kernel on some data. */
interface Remembered<K> {
  readonly model: CostModel
  readonly key: string
  readonly forms: readonly ScheduleCandidate<K>[]
}

/** Whether a form stores all as the kernel does. */
export const keepsDeclaredFormats = <K extends AutoSchedulable<K>>(
  kernel: K,
  form: ScheduleCandidate<K>,
): boolean => form.kernel.compilation.kernel.reformats.length === kernel.compilation.kernel.reformats.length

const hasAtomicSums = ({ loops }: Compilation): boolean =>
  someStmt(loops.body, (s) => s.kind === 'reduce' && s.atomic)
