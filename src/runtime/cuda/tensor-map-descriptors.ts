/**
 * Descriptors of TMA. Descriptions of buffers as matrices (`CUtensorMap`), from which instructions of compute capability
 * 9.0 copy boxes: the driver encodes one from an address and sizes, and a launch takes it by value.
 */
import { fail } from '../../ast/diagnostic.ts'
import { DTYPE_BYTES, type Dtype } from '../../ir/dtype.ts'
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
/** `CUtensorMapSwizzle`, by bytes. */
const SWIZZLE: ReadonlyMap<number, number> = new Map([
  [0, 0],
  [32, 1],
  [64, 2],
  [128, 3],
])
/** Lines of 256 bytes come into the L2 cache together. */
const PROMOTE_256 = 3
/** `CUtensorMapFloatOOBfill`: fill of boxes beyond the edges of the matrix. */
const ZEROS = 0

export type MatrixSpec = Extract<ArgSpec, { kind: 'matrix' }>

interface Encoded {
  readonly address: bigint
  readonly rows: number
  readonly columns: number
  readonly block: ArrayBuffer
  readonly at: bigint
}

export class Matrices {
  readonly #driver: CudaDriver
  /** The latest of each argument: launches of one program repeat themselves. */
  readonly #latest = new WeakMap<MatrixSpec, Encoded>()

  constructor(driver: CudaDriver) {
    this.#driver = driver
  }

  /**
   * The host address of a description, for the next launch.
   * @throws SptError `device/matrix`
   */
  encode(spec: MatrixSpec, address: bigint, rows: number, columns: number): bigint {
    const known = this.#latest.get(spec)
    if (known && known.address === address && known.rows === rows && known.columns === columns)
      return known.at
    const { cuTensorMapEncodeTiled } = this.#driver.calls
    const stride = columns * DTYPE_BYTES[spec.dtype]
    const refuse = (message: string, expected: string): never =>
      fail({ code: 'device/matrix', message, expected })
    if (!cuTensorMapEncodeTiled)
      return refuse(
        `the NVIDIA driver cannot describe ${spec.buffer} as a matrix`,
        'a driver of CUDA 12 or later',
      )
    if (stride % UNIT !== 0)
      return refuse(
        `${spec.buffer} has rows of ${columns} elements of ${spec.dtype}, of which no boxes are copied`,
        `rows of a multiple of ${UNIT} bytes`,
      )
    if (address % BigInt(UNIT) !== 0n)
      return refuse(
        `${spec.buffer} begins at address ${address}, and boxes of it are copied`,
        `memory that is aligned to ${UNIT} bytes`,
      )
    const block = new ArrayBuffer(MATRIX_BYTES + ALIGN)
    const start = this.#driver.addressOf(block)
    const at = start + ((BigInt(ALIGN) - (start % BigInt(ALIGN))) % BigInt(ALIGN))
    const { box, swizzle } = spec.matrix
    // Nothing is copied of a matrix without elements, but it has to be described.
    const sizes = BigUint64Array.of(BigInt(Math.max(1, columns)), BigInt(Math.max(1, rows)))
    const code = cuTensorMapEncodeTiled(
      at,
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
    this.#latest.set(spec, { address, rows, columns, block, at })
    return at
  }
}
