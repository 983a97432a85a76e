/** One part of a tensor that is stored in several: its names, for steps that are made for each. */

import { labelled } from '../ir/format-tables.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Sources } from '../run/launch-spans.ts'
import { axisOf, iterationsOver, loopOver, type StoredPart } from '../schedule/parts.ts'
import { ErrorSources } from './error-sources.ts'

export class Part extends ErrorSources {
  /** Unique among the parts; empty where there is one. */
  readonly label: string
  /** The buffer that stores it. */
  readonly buffer: string
  /** The part's format with its arguments, as written. */
  readonly format: string
  /** Arguments of its format, and what the composition calls them: `p.constants.width`. */
  readonly constants: Readonly<Record<string, number>>
  readonly sources: Sources
  readonly #part: StoredPart
  readonly #kernel: Kernel1

  constructor(kernel: Kernel1, part: StoredPart, sources: Sources) {
    super()
    this.sources = sources
    const { label, buffer, formats } = part
    this.label = label
    this.buffer = buffer
    this.format = formats[0]!.text
    this.constants = Object.fromEntries(formats.toReversed().flatMap((f) => [...f.constants]))
    this.#part = part
    this.#kernel = kernel
  }

  /** `name_label`: what the part's copy of something is called, for names of what steps make. */
  name(name: string): string {
    return labelled(name, this.label)
  }

  /**
   * A loop of the part by the name that its format gives the axis; another iterator's (`f`) of the only iteration of
   * the part that has it; otherwise a loop that a step made under `name(…)`.
   */
  loop(name: string): string {
    const axis = axisOf(this.#part, this.#kernel, name)
    if (axis !== undefined) return loopOver(this.#part, this.#kernel, axis)
    const having = iterationsOver(this.#part, this.#kernel).filter((it) =>
      it.iters.some((x) => x.name === name),
    )
    return having.length === 1 ? `${having[0]!.name}.${name}` : this.name(name)
  }

  /** The part's copy of an iteration. */
  nest(name: string): string {
    return this.name(name)
  }
}
