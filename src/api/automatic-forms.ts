/**
 * Kernels without a schedule: the forms that sketches have for them (`search/sketch/shortlist.ts`), and which of them the cost
 * model expects to be the fastest on what is bound.
 */
import { orRefused, SptError } from '../ast/diagnostic.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Compilation } from '../run/compile.ts'
import type { Device } from '../runtime/device.ts'
import { sparseTensors } from '../search/model/prediction.ts'
import { costModel } from '../search/model/trained.ts'
import {
  Decisions,
  formsOf,
  type Schedulable,
  type SketchDevice,
  sketch,
  sketched,
} from '../search/sketch/index.ts'
import type { Tensor } from '../storage/tensor.ts'
import { expectedTimes } from './expected-times.ts'
import { sizesOf } from './statistics.ts'

/** What is chosen for: a device, or a kind of device. */
export type AutomaticFor = Device | SketchDevice

/** Values under the names that the kernel's text declares. */
export interface AutomaticInputs {
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly params: Readonly<Record<string, number>>
}

/** Each is made, and looked at by the model: some milliseconds, tens where it has tiles. */
const MOST_FORMS = 6
/** How much less than the guess another form has to be expected to take: rules are right oftener than small differences. */
const SURE = 0.9
/** Sizes whose forms are kept of a kernel: data of other sizes come one after the other. */
const MOST_SIZES = 16

/** What takes steps, giving a `K`. */
export interface Automatic<K> extends Schedulable<K> {
  readonly compilation: Compilation
}

const known = new WeakMap<object, Map<string, readonly unknown[]>>()

/** Legal forms of a kernel that has no steps on loops, `most` at most, the best guess first; none where all are refused. */
export function automaticForms<K extends Automatic<K>>(
  kernel: K,
  device: SketchDevice,
  sizes: Readonly<Record<string, number>>,
  most = MOST_FORMS,
): readonly K[] {
  const ofKernel = known.get(kernel) ?? new Map<string, readonly unknown[]>()
  known.set(kernel, ofKernel)
  const key = JSON.stringify([device, most, sizes])
  const before = ofKernel.get(key) as readonly K[] | undefined
  if (before) return before
  const target = { device, sizes }
  const forms = formsOf((d) => void sketch(kernel, target, d), most).flatMap((form): K[] => {
    const made = orRefused(() => sketched(kernel, target, new Decisions(form, true)))
    return made instanceof SptError ? [] : [made]
  })
  if (ofKernel.size >= MOST_SIZES) ofKernel.delete(ofKernel.keys().next().value!)
  ofKernel.set(key, forms)
  return forms
}

/** Sizes among what is bound: scalars are none. */
function boundSizes(source: Kernel1, { tensors, params }: AutomaticInputs): Record<string, number> {
  const sizes = new Set(source.params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])))
  return Object.fromEntries(
    [...sizesOf(source, { tensors, params, resident: {} })].filter(([name]) => sizes.has(name)),
  )
}

/**
 * Forms for the sizes of what is bound, the best guess first, and before it those that the cost model of the device expects to
 * be faster. The guess alone where there is no model, and where nothing that is bound is a matrix: that is what models know.
 * @throws SptError `bind/…` of what does not fit the kernel
 */
export function fastestForms<K extends Automatic<K>>(
  kernel: K,
  on: AutomaticFor,
  inputs: AutomaticInputs,
): readonly K[] {
  const { source } = kernel.compilation
  const [kind, named] = typeof on === 'string' ? [on, undefined] : [on.kind, on]
  const sizes = boundSizes(source, inputs)
  const model = costModel(kind, named)
  const sparse = sparseTensors(source, inputs.tensors)
  const isKnown = Object.values(sparse).some((t) => t.shape.length === 2)
  if (!model || !isKnown) return automaticForms(kernel, kind, sizes, 1)
  const forms = automaticForms(kernel, kind, sizes)
  const compilations = forms.map((k) => k.compilation)
  const times = expectedTimes(model, kind, source, sparse, new Map(Object.entries(sizes)), compilations)
  const [guessed] = times
  if (guessed === null || guessed === undefined) return forms
  return forms
    .map((form, k) => ({ form, ms: k === 0 ? guessed * SURE : (times[k] ?? Number.POSITIVE_INFINITY) }))
    .toSorted((a, b) => (a.ms === b.ms ? 0 : a.ms - b.ms))
    .map(({ form }) => form)
}
