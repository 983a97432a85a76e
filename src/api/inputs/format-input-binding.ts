/** List and set arguments of formats among values bound for several kernels: each kernel takes those of its own formats. */
import { byName } from '../../ast/by-name.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Binding, bindingIn, bindingOf } from '../../run/bind/binding-names.ts'
import type { Inputs } from '../../run/bind/index.ts'
import type { FormatInput } from '../../schedule/coordinates/as/format-inputs.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { coordinatesOf, isTyped } from './argument-checks.ts'
import { valuesIn } from './bound-inputs.ts'
import { isDeclared } from './bound-values.ts'
import { type Bindable, dtypeOf } from './tensors.ts'

/** List and set arguments of formats, by name. */
export type DeclaredInputs = Pick<ReadonlyMap<string, FormatInput>, 'has' | 'get' | 'keys'>

/**
 * Returns the bound values that a kernel takes; the others belong to other kernels. Throws SptError `bind/unknown-name` if no format takes
 * a value.
 */
export function formatInputsFor<T>(
  kernel: Kernel1,
  bound: Readonly<Record<string, T>>,
  used: DeclaredInputs,
): Record<string, T> {
  checkBound(kernel, Object.keys(bound), used)
  return byName(Object.entries(bound).filter(([name]) => bindingAmong(kernel, name, used)))
}

/** Resolves a bound name in a kernel. `null` for arguments of formats that the kernel does not use, even if an axis has the same name. */
export function bindingAmong(kernel: Kernel1, name: string, used: DeclaredInputs): Binding | null {
  const found = bindingIn(kernel, name)
  return found?.kind === 'axis' && used.has(name) ? null : found
}

/** Throws SptError `bind/unknown-name` for names that neither the kernel nor formats take. */
export function checkBound(kernel: Kernel1, names: Iterable<string>, used: DeclaredInputs): void {
  for (const name of names)
    if (!used.has(name) && !bindingIn(kernel, name)) bindingOf(kernel, name, undefined, used.keys())
}

/** Returns the inputs of a kernel with the arguments of its formats. Throws SptError `tensor/…`, `bind/missing-size`. */
export function withBeside(
  kernel: Kernel1,
  inputs: Inputs,
  beside: Readonly<Record<string, Bindable>>,
): Inputs {
  if (Object.keys(beside).length === 0) return inputs
  const { tensors } = valuesIn(kernel, { ...inputs, tensors: { ...inputs.tensors, ...beside } })
  return { ...inputs, tensors }
}

/** Returns the bound values that the kernel's source does not declare, as tensors. Throws SptError `tensor/…`. */
export const besideDeclared = (
  source: Kernel1,
  bound: Readonly<Record<string, Bindable>>,
  used: DeclaredInputs,
): Record<string, Tensor> =>
  byName(
    Object.entries(bound).flatMap(([name, x]): [string, Tensor][] =>
      isDeclared(source, name, used) ? [] : [[name, asTensor(name, x, used.get(name)?.kind)]],
    ),
  )

/** Converts an array to a list, or to a set along one dimension. */
function asTensor(name: string, x: Bindable, kind: FormatInput['kind'] | undefined): Tensor {
  if (!Array.isArray(x) && !isTyped(x)) return x as Tensor
  const values = kind === 'set' && isTyped(x) ? x : coordinatesOf(x, name)
  return { kind: 'dense', shape: [values.length], values, dtype: dtypeOf(values) }
}
