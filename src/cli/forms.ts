/** What runs of a kernel whose loops have no steps: the form that `compile` takes, and why it is this one. */
import type { AutomaticForm } from '../api/automatic-forms.ts'
import type { RunInputs } from '../api/bound-inputs.ts'
import type { Chosen } from '../api/choice-conditions.ts'
import type { Kernel } from '../api/kernel.ts'
import { SptError } from '../ast/diagnostic.ts'
import type { Device, DeviceKind } from '../runtime/device.ts'
import { otherChip } from '../search/cost-model.ts'
import { ms } from './figures.ts'

export type Form = AutomaticForm<Kernel>

/** On what is bound, or sizes alone; the one that runs first. None of a kernel with steps on loops. */
export function formsOn(
  kernel: Kernel,
  on: Device | DeviceKind,
  { params = {}, tensors = {} }: Pick<RunInputs, 'params' | 'tensors'>,
): readonly Form[] {
  const numbers = Object.entries(params).map(([name, x]) => [name, Number(x)] as const)
  return kernel.automaticForms(on, Object.fromEntries(numbers), tensors)
}

/** Of a choice that a rule of the device takes the place of. */
export const notEvaluated = ({ choice, because }: Pick<Chosen, 'choice' | 'because'>): string =>
  `a rule instead of ${choice}: ${because} (--schedule ${choice} evaluates it)`

/** As programs read it; times in milliseconds. */
export const formJson = (forms: readonly Form[]) => ({
  form: forms[0]!.text,
  ...(forms[0]!.because === undefined ? {} : { because: forms[0]!.because }),
  expected: forms.flatMap(({ text, milliseconds }) =>
    milliseconds === null ? [] : [{ text, milliseconds }],
  ),
})

const nameOf = ({ text }: Form): string => text || 'the only one'

/** Of the form that runs. */
function firstText(first: Form): string {
  if (first.milliseconds !== null) return `${nameOf(first)}: ${ms(first.milliseconds)} are expected`
  return `${nameOf(first)}: ${first.because ?? 'the best guess from its loops'}`
}

/**
 * Whose cost model predicted, where that is not the device's own.
 * @param named `null`: of a kind of device alone
 */
export function byModel(of: string | null | undefined, kind: DeviceKind, named: string | null): string {
  const chip = of ? otherChip(of, kind, named ?? undefined) : null
  if (!chip) return ''
  return named === null
    ? ` by a model of ${chip}`
    : ` by a model of another device, ${chip}, which tells what is faster, not how long it takes (spt calibrate makes one of this)`
}

const othersOf = ([first, ...others]: readonly Form[]): readonly string[] =>
  first!.milliseconds === null
    ? []
    : others.map((f) => `${f.milliseconds === null ? 'unknown' : ms(f.milliseconds)} of ${nameOf(f)}`)

/** On one line. */
export const formText = (forms: readonly Form[]): string =>
  [firstText(forms[0]!), ...othersOf(forms)].join('; ')

/** The same as rows of a report, each form on a line. */
export function formRows(forms: readonly Form[], by = ''): readonly (readonly [string, string])[] {
  const [first] = forms
  if (!first) return []
  return [['form', firstText(first) + by], ...othersOf(forms).map((text) => ['', text] as const)]
}

/** What `use` makes of the form that runs; of the kernel as it is where there is none, or it is refused later. */
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
