/** List and set arguments of formats among values bound for several kernels: each kernel takes the arguments of its own formats. */
import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { bindPlan, callerTensor } from '../../run/bind/bind-plan.ts'
import { type Binding, bindingIn, bindingOf } from '../../run/bind/binding-names.ts'
import type { Inputs } from '../../run/bind/index.ts'
import type { FormatInput } from '../../schedule/coordinates/as/format-inputs.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { coordinatesOf, isTyped } from './argument-checks.ts'
import { declaredOf, isDeclared, type RunInputs, valuesIn } from './bound-inputs.ts'
import { type Bindable, dtypeOf } from './tensors.ts'

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

/** Inputs bound for several kernels, split into inputs of the unscheduled kernel, and list and set arguments of formats. */
export class SplitInputs {
  /** List and set arguments of the program's formats, and of kernels seen so far. */
  readonly used: Map<string, FormatInput>
  readonly #source: Kernel1
  readonly #given: RunInputs
  #own: Inputs | undefined

  /** Throws SptError like `valuesIn`. */
  constructor(source: Kernel1, given: RunInputs, taken: ReadonlyMap<string, FormatInput>) {
    this.#source = source
    this.#given = given
    this.used = new Map(taken)
    const own = resultOrError(() => this.own)
    // The name of an axis may be an argument of a later kernel's format, so errors are postponed.
    if (own instanceof SptError && !Object.keys(this.#tensors).some((name) => this.#isAxis(name))) throw own
  }

  get #tensors(): Readonly<Record<string, Bindable>> {
    return this.#given.tensors ?? {}
  }

  /** Inputs of the unscheduled kernel. Throws SptError like `valuesIn`. */
  get own(): Inputs {
    if (this.#own) return this.#own
    const declared = declaredOf(this.#source, this.#tensors, this.used)
    this.#own = valuesIn(this.#source, { ...this.#given, tensors: declared })
    return this.#own
  }

  /** Values that the unscheduled kernel does not declare. */
  get beside(): Readonly<Record<string, Bindable>> {
    const all = Object.entries(this.#tensors)
    return byName(all.filter(([name]) => !isDeclared(this.#source, name, this.used)))
  }

  /** Records the format arguments of a kernel. Returns true if a name that was treated as an axis is one of them. */
  learn(kernel: Kernel1): boolean {
    const found = [...bindPlan(kernel).operands].filter(([name]) => !this.used.has(name))
    const isOther = found.some(([name]) => Object.hasOwn(this.#tensors, name) && this.#isAxis(name))
    for (const [name, { kind }] of found) this.used.set(name, { kind, tensor: null })
    if (isOther) this.#own = undefined
    return isOther
  }

  #isAxis(name: string): boolean {
    return isDeclared(this.#source, name, this.used) && callerTensor(this.#source, name) === undefined
  }
}
