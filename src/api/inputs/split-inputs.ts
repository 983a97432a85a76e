/** Inputs bound for several kernels, split into inputs of the unscheduled kernel, and list and set arguments of formats. */
import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Inputs } from '../../run/bind/index.ts'
import { callerTensor, givenOf } from '../../run/bind/sources/caller-tensors.ts'
import type { FormatInput } from '../../schedule/coordinates/as/format-inputs.ts'
import { type RunInputs, valuesIn } from './bound-inputs.ts'
import { declaredOf, isDeclared } from './bound-values.ts'
import type { Bindable } from './tensors.ts'

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
    const { tensors, params, seed } = valuesIn(this.#source, { ...this.#given, tensors: declared })
    this.#own = { tensors, params, ...(seed === undefined ? {} : { seed }) }
    return this.#own
  }

  /** Values that the unscheduled kernel does not declare. */
  get beside(): Readonly<Record<string, Bindable>> {
    const all = Object.entries(this.#tensors)
    return byName(all.filter(([name]) => !isDeclared(this.#source, name, this.used)))
  }

  /** Records the format arguments of a kernel. Returns true if a name that was treated as an axis is one of them. */
  learn(kernel: Kernel1): boolean {
    const found = [...givenOf(kernel)].filter(([name]) => !this.used.has(name))
    const isOther = found.some(([name]) => Object.hasOwn(this.#tensors, name) && this.#isAxis(name))
    for (const [name, { kind }] of found) this.used.set(name, { kind, tensor: null })
    if (isOther) this.#own = undefined
    return isOther
  }

  #isAxis(name: string): boolean {
    return isDeclared(this.#source, name, this.used) && callerTensor(this.#source, name) === undefined
  }
}
