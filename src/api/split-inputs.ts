/** What is bound for several kernels: the inputs of the kernel as written, and lists and sets that formats take. */
import { byName } from '../ast/by-name.ts'
import { orRefused, SptError } from '../ast/diagnostic.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { callerTensor, givenOf } from '../run/bind/caller-tensors.ts'
import type { Inputs } from '../run/bind/index.ts'
import type { FormatInput } from '../schedule/format-inputs.ts'
import { type RunInputs, valuesIn } from './bound-inputs.ts'
import { declaredOf, isDeclared } from './bound-values.ts'
import type { Bindable } from './tensors.ts'

export class SplitInputs {
  /** What formats take: those that the program has, and those of kernels that were met. */
  readonly used: Map<string, FormatInput>
  readonly #source: Kernel1
  readonly #given: RunInputs
  #own: Inputs | undefined

  /** @throws SptError as `valuesIn` */
  constructor(source: Kernel1, given: RunInputs, taken: ReadonlyMap<string, FormatInput>) {
    this.#source = source
    this.#given = given
    this.used = new Map(taken)
    const own = orRefused(() => this.own)
    // A list of a kernel to come may be called like an axis: what it is shows when that is met.
    if (own instanceof SptError && !Object.keys(this.#tensors).some((name) => this.#isAxis(name))) throw own
  }

  get #tensors(): Readonly<Record<string, Bindable>> {
    return this.#given.tensors ?? {}
  }

  /** Of the kernel as written. @throws SptError as `valuesIn` */
  get own(): Inputs {
    if (this.#own) return this.#own
    const declared = declaredOf(this.#source, this.#tensors, this.used)
    const { tensors, params, seed } = valuesIn(this.#source, { ...this.#given, tensors: declared })
    this.#own = { tensors, params, ...(seed === undefined ? {} : { seed }) }
    return this.#own
  }

  /** What the kernel as written does not declare. */
  get beside(): Readonly<Record<string, Bindable>> {
    const all = Object.entries(this.#tensors)
    return byName(all.filter(([name]) => !isDeclared(this.#source, name, this.used)))
  }

  /** Learns what a kernel's formats take; whether something that was taken for an axis is none. */
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
