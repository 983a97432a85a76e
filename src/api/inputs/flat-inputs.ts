/** Arguments of calls on compiled kernels: tensors, sizes and scalars in one object by name, and options. */
import { byName } from '../../ast/by-name.ts'
import type { WorkOptions } from '../../ast/work.ts'
import type { DeviceFacts, SelectionInputs } from '../dispatch/device-facts.ts'
import { expectArgument, expectOptions, isRecord } from './argument-checks.ts'
import { expectRecord, type RunInputs } from './bound-inputs.ts'
import type { Bindable } from './tensors.ts'

/**
 * Values by name: numbers are sizes and scalars; other values are tensors, axes (structure only, or offsets of a ragged axis), lists and
 * sets of formats, or ready-made arrays of all parts of a tensor.
 */
export type Inputs = Readonly<Record<string, Bindable | number | boolean>>

/** Options of a binding. */
export interface BindOptions
  extends DeviceFacts,
    Pick<RunInputs, 'seed' | 'maxRounds' | 'statistics'>,
    WorkOptions {}

/** Options of a schedule selection. */
export interface SelectionOptions extends BindOptions, Pick<SelectionInputs, 'resident'> {}

/** Names of `BindOptions`. */
const OPTIONS = ['seed', 'maxRounds', 'statistics', 'capability', 'processors', 'features'] as const

/**
 * Separates sizes and scalars from tensors, and leaves out `WorkOptions`. Throws SptError `api/argument`, `api/unknown-option`.
 * @param more - Names of further options
 */
export function namedInputs<O extends BindOptions>(
  call: string,
  inputs: Inputs,
  options: O,
  more: readonly (keyof O & string)[] = [],
): SelectionInputs {
  expectRecord(inputs)
  expectOptions(call, options, [...OPTIONS, ...more], (name) =>
    name === 'resident'
      ? 'bind resident tensors with bindResident(kernel, { A: parts, B })'
      : `put tensors and sizes into the first argument: ${call}({ ${name}, … })`,
  )
  const [tensors, params] = [byName<Bindable>(), byName<number | boolean>()]
  for (const [name, value] of Object.entries(inputs)) {
    if (typeof value === 'number' || typeof value === 'boolean') params[name] = value
    else {
      const isNested = (name === 'tensors' || name === 'params') && isRecord(value) && !('kind' in value)
      expectArgument(
        !isNested,
        name,
        value,
        'a tensor',
        `name tensors and sizes directly: ${call}({ A, B, d: 32 })`,
      )
      tensors[name] = value
    }
  }
  const { signal, onProgress, ...selection }: SelectionOptions = options
  return { tensors, params, ...selection }
}

/** The arguments of a call with these inputs. */
export function flatInputs({ tensors, params, ...options }: SelectionInputs): [Inputs, SelectionOptions] {
  return [byName<Inputs[string]>(Object.entries({ ...tensors, ...params })), options]
}
