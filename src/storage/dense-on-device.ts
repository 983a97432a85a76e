/** Dense tensors whose values are on a device only: on the host they have a shape and a type. */
import { fail } from '../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import type { DenseTensor, Tensor } from './tensor.ts'

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
