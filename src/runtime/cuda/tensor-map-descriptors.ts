/**
 * TMA descriptors (`CUtensorMap`): buffers as matrices, from which instructions of compute capability 9.0 copy boxes. The driver
 * encodes a descriptor from an address and sizes, and a launch takes it by value.
 */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { DTYPE_BYTES, type Dtype } from '../../ir/values/dtype.ts'
import type { ArgSpec } from '../device.ts'
import { type CudaDriver, check } from './driver.ts'

/** Size and required alignment of a descriptor in bytes. */
export const MATRIX_BYTES = 128
const ALIGN = 64
/** Required alignment of addresses and row strides in bytes. */
const UNIT = 16

/** `CUtensorMapDataType`. */
const TYPE: Readonly<Record<Dtype, number>> = {
  u8: 0,
  i8: 0,
  bool: 0,
  u32: 2,
  i32: 3,
  f16: 6,
  f32: 7,
  f64: 8,
  bf16: 9,
}
/** `CUtensorMapSwizzle` by swizzle width in bytes. */
const SWIZZLE: ReadonlyMap<number, number> = new Map([
  [0, 0],
  [32, 1],
  [64, 2],
  [128, 3],
])
/** Promotes loads to 256 bytes in the L2 cache. */
const PROMOTE_256 = 3
/** `CUtensorMapFloatOOBfill`: fill of boxes beyond the edges of the matrix. */
const ZEROS = 0

export type MatrixSpec = Extract<ArgSpec, { kind: 'matrix' }>

interface EncodedMap {
  readonly address: bigint
  readonly rows: number
  readonly columns: number
  readonly block: ArrayBuffer
  readonly descriptor: bigint
}

export class Matrices {
  readonly #driver: CudaDriver
  /** Latest descriptor of each argument, because launches are repeated with the same arguments. */
  readonly #latest = new WeakMap<MatrixSpec, EncodedMap>()

  constructor(driver: CudaDriver) {
    this.#driver = driver
  }

  /**
   * Returns the host address of a descriptor for the next launch.
   * @throws SptError `device/matrix`
   */
  encode(spec: MatrixSpec, address: bigint, rows: number, columns: number): bigint {
    const latest = this.#latest.get(spec)
    if (latest && latest.address === address && latest.rows === rows && latest.columns === columns)
      return latest.descriptor
    const { cuTensorMapEncodeTiled } = this.#driver.calls
    const stride = columns * DTYPE_BYTES[spec.dtype]
    const reject = (message: string, expected: string): never =>
      fail({ code: 'device/matrix', message, expected })
    if (!cuTensorMapEncodeTiled)
      return reject(
        `the NVIDIA driver cannot describe ${spec.buffer} as a matrix`,
        'a driver of CUDA 12 or later',
      )
    if (stride % UNIT !== 0)
      return reject(
        `${spec.buffer} has rows of ${columns} elements of ${spec.dtype}, of which no boxes are copied`,
        `rows of a multiple of ${UNIT} bytes`,
      )
    if (address % BigInt(UNIT) !== 0n)
      return reject(
        `${spec.buffer} begins at address ${address}, and boxes of it are copied`,
        `memory that is aligned to ${UNIT} bytes`,
      )
    const block = new ArrayBuffer(MATRIX_BYTES + ALIGN)
    const start = this.#driver.addressOf(block)
    const descriptor = start + ((BigInt(ALIGN) - (start % BigInt(ALIGN))) % BigInt(ALIGN))
    const { box, swizzle } = spec.matrix
    // A matrix without elements also needs a descriptor, whose sizes must be positive.
    const sizes = BigUint64Array.of(BigInt(Math.max(1, columns)), BigInt(Math.max(1, rows)))
    const code = cuTensorMapEncodeTiled(
      descriptor,
      TYPE[spec.dtype],
      2,
      address,
      sizes,
      BigUint64Array.of(BigInt(Math.max(UNIT, stride))),
      Uint32Array.of(box[1], box[0]),
      Uint32Array.of(1, 1),
      0,
      SWIZZLE.get(swizzle) ?? 0,
      PROMOTE_256,
      ZEROS,
    )
    check(this.#driver, 'cuTensorMapEncodeTiled', code)
    this.#latest.set(spec, { address, rows, columns, block, descriptor })
    return descriptor
  }
}
