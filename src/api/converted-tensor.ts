/** A tensor in a format: its parts as arrays, and what they cost. */
import { additionalArrays } from '../ir/format-tables.ts'
import { reportTensor, type TensorReport } from '../pictures/format-figures.ts'
import { drawParts, type PictureOptions } from '../pictures/picture/index.ts'
import type { Sources } from '../run/launch-spans.ts'
import { arraysOf, shapeOf } from '../storage/storage.ts'
import { partsToCoords, type StoredPart, type StoredParts } from '../storage/stored-parts.ts'
import type { CoordTensor, StoredTensor } from '../storage/tensor.ts'
import { expectName, expectOptions } from './argument-checks.ts'
import { ErrorSources } from './error-sources.ts'

/** One part of a tensor, as arrays. */
export interface ConvertedPart {
  readonly label: string
  /** As written: `ell(4)`. */
  readonly format: string
  /** Of the part, in the order of its elements. */
  readonly axes: readonly string[]
  /** Arrays by axis (of each, also where there are none), values by position: what a kernel takes as the part's buffer. */
  readonly tensor: StoredTensor
  /**
   * Permutations and lists that lead from positions to coordinates, and the bits of a mask, by the names that they are bound by:
   * those of the format's text; lists that came with the data under theirs.
   */
  readonly tables: Readonly<Record<string, Int32Array>>
}

/** A tensor in a format. */
export class ConvertedTensor extends ErrorSources {
  readonly sources: Sources
  readonly #stored: StoredParts
  #parts: readonly ConvertedPart[] | undefined

  constructor(stored: StoredParts, sources: Sources) {
    super()
    this.sources = sources
    this.#stored = stored
  }

  /** As written, with arguments. */
  get format(): string {
    return this.#stored.instance.text
  }

  get shape(): readonly number[] {
    return this.#stored.shape
  }

  /** In the order of the composition. */
  get parts(): readonly ConvertedPart[] {
    this.#parts ??= this.#stored.parts.map((p) => partOf(p, this.#stored))
    return this.#parts
  }

  /** What is stored, with its coordinates, part after part; padding and fill stay behind. */
  toCoords(): CoordTensor {
    return partsToCoords(this.#stored)
  }

  /** Parts, padding, bytes, and lengths by dimension. */
  describe(): TensorReport {
    return reportTensor(this.#stored)
  }

  /** A picture of the tensor with its parts, and of how each is stored: the text of an SVG file. */
  svg(options: PictureOptions = {}): string {
    expectOptions('svg', options, ['name'])
    if (options.name !== undefined) expectName('a picture', options.name)
    return drawParts(this.#stored, options)
  }
}

function partOf({ part, storage, values, tables }: StoredPart, { dtype }: StoredParts): ConvertedPart {
  const shape = shapeOf(storage)
  return {
    label: part.label,
    format: part.instance.text,
    axes: storage.axes.map((a) => a.name),
    tensor: { kind: 'stored', shape, arrays: arraysOf(storage.levels), values, dtype },
    tables: Object.fromEntries(
      additionalArrays(part.instance).map(({ name, bindingName: bound }) => [bound, tables.get(name)!]),
    ),
  }
}
