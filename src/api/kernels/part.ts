/** One part of a tensor in a composed format: its names, for steps per part. */

import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { labelled } from '../../ir/formats/format-tables.ts'
import type { Sources } from '../../run/compile/compiled-program.ts'
import { axisOf, iterationsOver, loopOver, type StoredPart } from '../../schedule/names/parts.ts'
import { ErrorSources } from '../programs/error-sources.ts'

export class Part extends ErrorSources {
  /** Label, unique among the parts; empty if there is only one. */
  readonly label: string
  /** Name of the buffer that stores the part. */
  readonly buffer: string
  /** Format of the part with its arguments, as written. */
  readonly format: string
  /** Arguments of the format by their names in the format and in the composition, such as `p.constants.width`. */
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

  /** Returns `name_label`, the name of the part's copy, for names of loops and buffers that steps create. */
  name(name: string): string {
    return labelled(name, this.label)
  }

  /**
   * Returns a loop of the part by the format's name of its axis, or by another iterator (`f`) if only one iteration of the part has it.
   * Otherwise, returns a loop that a step created under `name(…)`.
   */
  loop(name: string): string {
    const axis = axisOf(this.#part, this.#kernel, name)
    if (axis !== undefined) return loopOver(this.#part, this.#kernel, axis)
    const having = iterationsOver(this.#part, this.#kernel).filter((it) =>
      it.iters.some((x) => x.name === name),
    )
    return having.length === 1 ? `${having[0]!.name}.${name}` : this.name(name)
  }

  /** Name of the part's copy of an iteration. */
  nest(name: string): string {
    return this.name(name)
  }
}
