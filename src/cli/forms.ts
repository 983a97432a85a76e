/** Selects the automatic form of a kernel whose loops have no steps, as `build` does, and explains the selection. */

import type { ScheduleCandidate } from '../api/auto-schedule/schedule-candidates.ts'
import type { Selection } from '../api/dispatch/dispatch-conditions.ts'
import { plainTexts } from '../api/dispatch/schedules.ts'
import type { RunInputs } from '../api/inputs/bound-inputs.ts'
import type { Kernel } from '../api/kernels/kernel.ts'
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import { chipOf, processorName } from '../io/package/calibrations.ts'
import type { Device, DeviceKind } from '../runtime/device.ts'
import { otherChip } from '../search/ranking/cost-model.ts'
import { ms } from './output/figures.ts'

export type Form = ScheduleCandidate<Kernel>

/** Forms for the bound data, or for sizes alone, in order of preference; empty for kernels with loop steps. */
export function formsOn(
  kernel: Kernel,
  device: Device | DeviceKind,
  { params = {}, tensors = {} }: Pick<RunInputs, 'params' | 'tensors'>,
): readonly Form[] {
  const numbers = Object.entries(params).map(([name, x]) => [name, Number(x)] as const)
  return kernel.inspect.scheduleCandidates(device, Object.fromEntries(numbers), tensors)
}

/** States that a rule of the device replaces automatic selection. */
export const ruleText = ({ dispatch, reason }: Pick<Selection, 'dispatch' | 'reason'>): string =>
  `a rule: ${reason} (--schedule ${dispatch} evaluates ${dispatch} instead)`

/** The selected form and predicted times (ms) as JSON. */
export const formJson = (forms: readonly Form[]) => ({
  form: forms[0]!.text,
  ...(forms[0]!.plain.length === 0 ? {} : { plain: forms[0]!.plain }),
  ...(forms[0]!.reason === undefined ? {} : { reason: forms[0]!.reason }),
  predictions: forms.flatMap(({ text, milliseconds }) =>
    milliseconds === null ? [] : [{ text, milliseconds }],
  ),
})

/** `default`, with the decisions of an automatic form: `default with sum.at = apart`. */
const nameOf = ({ text }: Form): string => (text.includes('=') ? `default with ${text}` : text || 'default')

function selectedFormText(first: Form): string {
  if (first.milliseconds !== null) return `${nameOf(first)}: predicted ${ms(first.milliseconds)}`
  return `${nameOf(first)}: ${first.reason ?? 'selected by a rule, without predicted times'}`
}

/** Names of the host's processor in cost models of the package, and in calibrated models. */
const processorNames = (): readonly string[] => [processorName(), chipOf({ kind: 'cpu' }).name]

/**
 * States the chip that the cost model was trained on, and warns if it differs from the device.
 * @param deviceName - `null` if only the kind of the device is known
 */
export function costModelText(
  model: string | null | undefined,
  kind: DeviceKind,
  deviceName: string | null,
  processor = processorNames(),
): string {
  if (!model) return ''
  const isOther = deviceName !== null && otherChip(model, kind, deviceName, processor) !== null
  return `cost model: ${model}${isOther ? ', measured on another chip, so compare times and do not rely on them; spt calibrate makes a model of this device' : ''}`
}

/** The predicted times of the selected schedule; `null` without predictions. */
export function predictedText(
  { predictions, costModel }: Pick<Selection, 'predictions' | 'costModel'>,
  kind: DeviceKind,
  deviceName: string | null,
): string | null {
  const [first, second] = predictions
  if (!first) return null
  const runnerUp = second ? [`runner-up ${second.text}: ${ms(second.milliseconds)}`] : []
  const details = [...runnerUp, costModelText(costModel, kind, deviceName)].join('; ')
  return `${ms(first.milliseconds)} (${details})`
}

const alternativeTexts = ([first, ...alternatives]: readonly Form[]): readonly string[] =>
  first!.milliseconds === null
    ? []
    : alternatives.map(
        (f) => `${nameOf(f)}: ${f.milliseconds === null ? 'no prediction' : ms(f.milliseconds)}`,
      )

/** All forms on one line. */
export const formText = (forms: readonly Form[]): string =>
  [selectedFormText(forms[0]!), ...alternativeTexts(forms), ...plainTexts(forms[0]!.plain)].join('; ')

/** The schedule, if any, followed by a text for each form; `none` without both. A schedule without loop steps has forms, too. */
export function scheduleTexts(
  schedule: string | null,
  forms: readonly Form[],
  kind: DeviceKind,
  deviceName: string | null,
): readonly string[] {
  const [first] = forms
  if (!first) return [schedule ?? 'none']
  const model = costModelText(first.costModel, kind, deviceName)
  const texts = [
    selectedFormText(first) + (model && ` (${model})`),
    ...alternativeTexts(forms),
    ...plainTexts(first.plain),
  ]
  return schedule === null ? texts : [schedule, ...texts]
}

/** Applies `use` to the selected form; to the kernel itself if there is no form or it is rejected later. */
export async function withForm<T>(
  kernel: Kernel,
  forms: readonly Form[],
  use: (kernel: Kernel, forms: readonly Form[]) => T | Promise<T>,
): Promise<T> {
  const [first] = forms
  if (!first) return use(kernel, [])
  try {
    return await use(first.kernel, forms)
  } catch (error) {
    // As `build` does. Errors of bound values occur for the unscheduled kernel, too.
    if (!(error instanceof SptError)) throw error
    return use(kernel, [])
  }
}
