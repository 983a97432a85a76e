/** A tensor in a format: its parts as arrays, and their storage cost. */
import { additionalArrays } from '../../ir/formats/format-tables.ts'
import { reportTensor, type TensorReport } from '../../pictures/format-figures.ts'
import type { PictureOptions } from '../../pictures/picture/index.ts'
import type { Sources } from '../../run/compile/program.ts'
import { partsToCoords, type StoredPart, type StoredParts } from '../../storage/entries/stored-parts.ts'
import { arraysOf, shapeOf } from '../../storage/storage.ts'
import type { CoordTensor, StoredTensor } from '../../storage/tensor.ts'
import { ErrorSources } from '../programs/error-sources.ts'
import { expectName, expectOptions } from './argument-checks.ts'

/** One part of a tensor, as arrays. */
export interface ConvertedPart {
  readonly label: string
  /** Format of the part as written, such as `ell(4)`. */
  readonly format: string
  /** Names of the part's axes, in storage order. */
  readonly axes: readonly string[]
  /** Index arrays by axis (empty objects for axes without arrays) and values by position, as a kernel takes them for the part's buffer. */
  readonly tensor: StoredTensor
  /**
   * Permutations and lists that map positions to coordinates, and mask bits, by the names under which they are bound: the names in the
   * format's source; list arguments keep their own names.
   */
  readonly tables: Readonly<Record<string, Int32Array>>
}

/** A tensor in a format. */
export class ConvertedTensor extends ErrorSources {
  readonly sources: Sources
  /** @internal */
  readonly stored: StoredParts
  #parts: readonly ConvertedPart[] | undefined

  /** @internal */
  constructor(stored: StoredParts, sources: Sources) {
    super()
    this.sources = sources
    this.stored = stored
  }

  /** Format as written, with arguments. */
  get format(): string {
    return this.stored.instance.text
  }

  get shape(): readonly number[] {
    return this.stored.shape
  }

  /** Parts in the order of the composition. */
  get parts(): readonly ConvertedPart[] {
    this.#parts ??= this.stored.parts.map((p) => partOf(p, this.stored))
    return this.#parts
  }

  /** Stored elements with their coordinates, part after part, without padding and fill. */
  toCoords(): CoordTensor {
    return partsToCoords(this.stored)
  }

  /** Parts, padding, bytes, and lengths by dimension. */
  describe(): TensorReport {
    return reportTensor(this.stored)
  }

  /** Picture of the tensor with its parts and their storage, as SVG text. */
  async svg(options: PictureOptions = {}): Promise<string> {
    expectOptions('svg', options, ['name'])
    if (options.name !== undefined) expectName('a picture', options.name)
    const { drawParts } = await import('../../pictures/picture/index.ts')
    return drawParts(this.stored, options)
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
