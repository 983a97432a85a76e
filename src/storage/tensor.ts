/** Tensors as inputs: coordinates, dense arrays, or arrays that are already in storage order. */

import { fail } from '../ast/diagnostics/diagnostic.ts'
import type { LevelArray } from '../ast/nodes/axis-kinds.ts'
import type { TypedArray } from '../ir/values/arrays.ts'
import type { Dtype } from '../ir/values/dtype.ts'

/** f16 and bf16 are stored as bit patterns in `Uint16Array`; bool as 0/1 in `Uint8Array`. */
export type ValueArray = TypedArray

/** Element e is at `(coords[0][e], coords[1][e], …)`; any order, duplicates are summed. */
export interface CoordTensor {
  readonly kind: 'coords'
  readonly shape: readonly number[]
  readonly coords: readonly Int32Array[]
  /** One per element; `null` for a pattern, whose values are all 1. */
  readonly values: ValueArray | null
  readonly dtype: Dtype
  /**
   * For a tensor read from blocks of a file: the number of zeros in the blocks, which are not elements of the tensor.
   */
  readonly padding?: number | undefined
  /** Value of absent elements, if the file states one other than 0; the buffer must have the same fill value. */
  readonly fill?: number | undefined
}

/** Row-major. */
export interface DenseTensor {
  readonly kind: 'dense'
  readonly shape: readonly number[]
  readonly values: ValueArray
  readonly dtype: Dtype
}

/**
 * Ready-made arrays of an axis tree, used directly after validation: for each axis the index arrays that its
 * kind requires, and the values in position order.
 */
export interface StoredTensor {
  readonly kind: 'stored'
  readonly shape: readonly number[]
  readonly arrays: Readonly<Record<string, { readonly [A in LevelArray]?: Int32Array }>>
  readonly values: ValueArray | null
  readonly dtype: Dtype
  /** Defects of the indices that binding repairs in a copy. */
  readonly repair?: Repair | undefined
}

export interface Repair {
  /** Sort segments whose indices do not ascend. */
  readonly sort?: boolean | undefined
  /** Add values with equal coordinates. */
  readonly sum?: boolean | undefined
}

export type Tensor = CoordTensor | DenseTensor | StoredTensor

/** Upper bound on the number of stored elements of a tensor. */
export function storedElements(t: Tensor): number {
  if (t.kind === 'coords') return t.coords[0]?.length ?? 0
  if (t.kind === 'dense') return t.shape.reduce((a, b) => a * b, 1)
  return Math.max(0, ...Object.values(t.arrays).map((a) => a.indices?.length ?? 32 * (a.mask?.length ?? 0)))
}

/** A one-dimensional tensor of coordinates or positions. */
export const listTensor = (values: Int32Array): DenseTensor => ({
  kind: 'dense',
  shape: [values.length],
  values,
  dtype: 'i32',
})

/** Its arrays by axis, without axes that have none, which conversions also list. */
export const namedArrays = ({
  arrays,
}: StoredTensor): readonly (readonly [string, StoredTensor['arrays'][string]])[] =>
  Object.entries(arrays).filter(([, axisArrays]) => Object.keys(axisArrays).length > 0)

/** Dense tensors whose values are on a device only: on the host they have a shape and a type. */
export abstract class DenseOnDevice implements DenseTensor {
  readonly kind = 'dense'
  readonly shape: readonly number[]
  readonly dtype: Dtype
  /** A description for messages: `H of layer`. */
  readonly origin: string

  constructor({ shape, dtype, origin }: Pick<DenseOnDevice, 'shape' | 'dtype' | 'origin'>) {
    this.shape = shape
    this.dtype = dtype
    this.origin = origin
  }

  /** Throws, so that no host code computes with missing values. @throws SptError `run/resident` */
  get values(): never {
    return fail({
      code: 'run/resident',
      message: `the values of ${this.origin} are on a device, and this call needs values on the host`,
      expected: 'a tensor that the host has',
      hint: 'download() gives one',
    })
  }
}

/** A bound tensor in messages: its name in the kernel and its origin. */
export const nameWithOrigin = (name: string, t: Tensor): string =>
  t instanceof DenseOnDevice ? `${name} (${t.origin}, resident)` : name
