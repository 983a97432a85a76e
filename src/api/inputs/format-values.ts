/** Formats without kernels: conversion of tensors to a format and back, with reports. */

import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { omittedCoordinate } from '../../formats/instance/trial.ts'
import { type Provenance, provenance } from '../../formats/proof/provenance.ts'
import { type AnyFormat, formatOfOrder, type Instance } from '../../ir/formats/format.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { TensorReport } from '../../pictures/format-figures.ts'
import type { PictureOptions } from '../../pictures/picture/index.ts'
import type { Sources } from '../../run/compile/program.ts'
import { checkOrder } from '../../storage/convert.ts'
import { coordsOfDense } from '../../storage/entries/stored-coords.ts'
import { convertTensor, type StoredParts } from '../../storage/entries/stored-parts.ts'
import { partsFromArrays } from '../../storage/ready/ready-parts.ts'
import type { CoordTensor, Tensor } from '../../storage/tensor.ts'
import { ErrorSources } from '../programs/error-sources.ts'
import {
  checkShape,
  checkTensor,
  expectArgument,
  expectInt32s,
  isRecord,
  refuseFill,
  refuseRepair,
} from './argument-checks.ts'
import { type ConvertedPart, ConvertedTensor } from './converted-tensor.ts'
import { type FormatData, givenFor, instanceOf } from './format-instances.ts'

/** A format or composition with its arguments. A format family over a list of dimensions accepts tensors of any order. */
export class SptFormat extends ErrorSources {
  readonly sources: Sources
  readonly #format: AnyFormat
  readonly #args: readonly (number | string)[]
  /** Cached instances of the format, by number of dimensions. */
  readonly #instances = new Map<number, Instance>()

  /**
   * @param sources - Sources in which the format is written
   * @throws SptError `format/…` if arguments do not fit, or the format fails on a small sample
   */
  constructor(format: AnyFormat, args: readonly (number | string)[], sources: Sources = new Map()) {
    super()
    this.sources = sources
    this.#format = format
    this.#args = args
    if (format.kind !== 'family') this.#of(format.over.length)
  }

  /** The format for tensors of `order` dimensions only. Then `dimensions`, `inputs`, `parts` and `provenance` are defined. */
  withOrder(order: number): SptFormat {
    expectArgument(Number.isInteger(order) && order >= 0, 'the order', order, 'a number of dimensions')
    return new SptFormat(formatOfOrder(this.#format, order), this.#args, this.sources)
  }

  #of(order: number): Instance {
    return getOrAdd(this.#instances, order, () => instanceOf(formatOfOrder(this.#format, order), this.#args))
  }

  get #instance(): Instance {
    if (this.#format.kind !== 'family') return this.#of(this.#format.over.length)
    return failAs('api/order', {
      message: `${this.text} is for tensors of any order, and the parts depend on the order`,
      expected: 'a number of dimensions',
      hint: 'state the number of dimensions: format.withOrder(3)',
    })
  }

  /** The instance for a tensor of this order. A mismatch with a fixed order is reported when the tensor is read. */
  #for(order: number): Instance {
    return this.#format.kind === 'family' ? this.#of(order) : this.#instance
  }

  /** Format as written, with arguments. */
  get text(): string {
    if (this.#format.kind !== 'family') return this.#instance.text
    return appliedName(this.#format.name, this.#args)
  }

  /** Names of the format's dimensions. */
  get dimensions(): readonly string[] {
    return this.#instance.over.map((a) => a.name)
  }

  /** List and set arguments that are bound with the data, by name. */
  get inputs(): Instance['given'] {
    return this.#instance.given
  }

  /** Labels and formats of the parts, in order. */
  get parts(): readonly { readonly label: string; readonly format: string }[] {
    return this.#instance.parts.map((p) => ({ label: p.label, format: p.instance.text }))
  }

  /** A coordinate that no part stores, such as `(i, j) = (0, 100) of 201 × 202`; `null` if the search found none. */
  get omittedCoordinate(): string | null {
    return omittedCoordinate(this.#instance)
  }

  /** Properties that are proved, and properties that are checked during conversion. */
  get provenance(): Provenance {
    return provenance(this.#instance)
  }

  /**
   * Converts a tensor to the format. Equal coordinates are summed, and zeros of a dense tensor are dropped. The tensor's arrays are not
   * modified, but may be shared with the result.
   * @throws SptError `format/overlap`, `format/leak`, `format/not-inverse`, `format/map-range`, `format/claim` with the coordinate,
   * `format/map-overflow`; `bind/…` if the tensor, a list or a set does not fit
   */
  convert(tensor: Tensor | ConvertedTensor, data: FormatData = {}): ConvertedTensor {
    const from = tensor instanceof ConvertedTensor ? tensor.toCoords() : this.#coords(tensor)
    const instance = this.#for(from.shape.length)
    return this.#stored(convertTensor(from, instance, givenFor(instance, from.shape, data)))
  }

  /** Parts, padding, bytes, and lengths by dimension of a tensor in the format. */
  describe(tensor: Tensor | ConvertedTensor, data: FormatData = {}): TensorReport {
    return this.convert(tensor, data).describe()
  }

  /** Picture of a tensor in the format, as SVG text. */
  async svg(
    tensor: Tensor | ConvertedTensor,
    data: FormatData = {},
    options: PictureOptions = {},
  ): Promise<string> {
    return this.convert(tensor, data).svg(options)
  }

  /**
   * Creates a tensor of this shape from ready-made arrays of all parts, which are validated but not copied.
   * @throws SptError `api/argument` (number of parts), `bind/shape` (number of dimensions), `bind/…`, `format/…`
   */
  fromParts(
    shape: readonly number[],
    parts: readonly Pick<ConvertedPart, 'tensor' | 'tables'>[],
    data: FormatData = {},
  ): ConvertedTensor {
    expectArgument(Array.isArray(shape), 'the shape', shape, 'the extent of each dimension')
    checkShape(shape)
    const instance = this.#for(shape.length)
    checkOrder(shape, instance)
    const wanted = instance.parts.map((p) => p.label || p.instance.text)
    const number = `${wanted.length === 1 ? '1 part' : `${wanted.length} parts`}: ${wanted.join(', ')}`
    expectArgument(Array.isArray(parts), 'the parts', parts, number)
    expectArgument(parts.length === wanted.length, 'the number of parts', parts.length, number)
    const arrays = parts.map((part, k) => {
      const what = `part ${instance.parts[k]!.label || k}`
      expectArgument(isRecord(part), what, part, 'its tensor, and its tables by name: { tensor, tables }')
      const { tensor, tables = {} } = part
      checkTensor(what, tensor, `the tensor of ${what}`)
      expectArgument(
        tensor.kind === 'stored',
        `the tensor of ${what}`,
        tensor,
        'arrays, as stored makes them',
      )
      refuseRepair(`the tensor of ${what}`, tensor)
      expectArgument(isRecord(tables), `the tables of ${what}`, tables, 'an Int32Array by name')
      for (const [name, t] of Object.entries(tables)) expectInt32s(`${name} of ${what}`, t)
      return { tensor, tables: new Map(Object.entries(tables)) }
    })
    return this.#stored(partsFromArrays(instance, arrays, givenFor(instance, shape, data)))
  }

  #stored(parts: StoredParts): ConvertedTensor {
    return new ConvertedTensor(parts, this.sources)
  }

  #coords(tensor: Tensor): CoordTensor {
    checkTensor('the format', tensor)
    refuseFill('the tensor', tensor)
    if (tensor.kind === 'coords') return tensor
    if (tensor.kind === 'dense') return coordsOfDense(tensor)
    return failWith('api/argument', `${this.text} is given ready-made arrays`, {
      expected: 'a tensor by coordinates, dense, or in another format',
      hint: 'pass the arrays to fromParts of their format',
    })
  }
}
