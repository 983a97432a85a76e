/** Selects the automatic form of a kernel whose loops have no steps, as `compile` does, and explains the selection. */
import { cpus } from 'node:os'
import type { AutomaticForm } from '../api/automatic-forms.ts'
import type { RunInputs } from '../api/bound-inputs.ts'
import type { Chosen } from '../api/choice-conditions.ts'
import type { Kernel } from '../api/kernel.ts'
import { SptError } from '../ast/diagnostic.ts'
import type { Device, DeviceKind } from '../runtime/device.ts'
import { otherChip } from '../search/cost-model.ts'
import { ms } from './figures.ts'

export type Form = AutomaticForm<Kernel>

/** Forms for the bound data, or for sizes alone, the preferred one first. Kernels with loop steps have none. */
export function formsOn(
  kernel: Kernel,
  on: Device | DeviceKind,
  { params = {}, tensors = {} }: Pick<RunInputs, 'params' | 'tensors'>,
): readonly Form[] {
  const numbers = Object.entries(params).map(([name, x]) => [name, Number(x)] as const)
  return kernel.automaticForms(on, Object.fromEntries(numbers), tensors)
}

/** Explanation that a rule of the device replaces the choice. */
export const notEvaluated = ({ choice, because }: Pick<Chosen, 'choice' | 'because'>): string =>
  `a rule: ${because} (--schedule ${choice} evaluates ${choice} instead)`

/** As programs read it; times in milliseconds. */
export const formJson = (forms: readonly Form[]) => ({
  form: forms[0]!.text,
  ...(forms[0]!.because === undefined ? {} : { because: forms[0]!.because }),
  expected: forms.flatMap(({ text, milliseconds }) =>
    milliseconds === null ? [] : [{ text, milliseconds }],
  ),
})

const nameOf = ({ text }: Form): string => text || 'default'

/** Description of the selected form. */
function firstText(first: Form): string {
  if (first.milliseconds !== null) return `${nameOf(first)}: predicted ${ms(first.milliseconds)}`
  return `${nameOf(first)}: ${first.because ?? 'selected by a rule, without predicted times'}`
}

/**
 * The chip that the cost model was trained on.
 * @param named `null`: of a kind of device alone
 */
export function byModel(
  of: string | null | undefined,
  kind: DeviceKind,
  named: string | null,
  processor = cpus()[0]?.model.trim(),
): string {
  if (!of) return ''
  const isOther =
    named !== null &&
    (kind === 'cpu' ? of !== processor && of !== named : otherChip(of, kind, named) !== null)
  return `cost model: ${of}${isOther ? ', measured on another chip, so compare times and do not rely on them; spt calibrate makes a model of this device' : ''}`
}

/** Times by which a schedule was selected, as a row; none where no model predicted them. */
export function predictedRow(
  { expected, expectedBy }: Pick<Chosen, 'expected' | 'expectedBy'>,
  kind: DeviceKind,
  named: string | null,
): readonly (readonly [string, string])[] {
  const [first, second] = expected
  if (!first) return []
  const runnerUp = second ? [`runner-up ${second.text}: ${ms(second.milliseconds)}`] : []
  const by = [...runnerUp, byModel(expectedBy, kind, named)].join('; ')
  return [['predicted', `${ms(first.milliseconds)} (${by})`]]
}

const othersOf = ([first, ...others]: readonly Form[]): readonly string[] =>
  first!.milliseconds === null
    ? []
    : others.map((f) => `${nameOf(f)}: ${f.milliseconds === null ? 'no prediction' : ms(f.milliseconds)}`)

/** On one line. */
export const formText = (forms: readonly Form[]): string =>
  [firstText(forms[0]!), ...othersOf(forms)].join('; ')

/** Rows of a report, one for each form; none without forms. */
export function formRows(forms: readonly Form[], by = ''): readonly (readonly [string, string])[] {
  const [first] = forms
  if (!first) return []
  return [
    ['schedule', firstText(first) + (by && ` (${by})`)],
    ...othersOf(forms).map((text) => ['', text] as const),
  ]
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
  } catch (why) {
    // As `compile` does. What is wrong with what is bound is so for both.
    if (!(why instanceof SptError)) throw why
    return use(kernel, [])
  }
}
