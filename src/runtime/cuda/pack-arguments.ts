/**
 * Packs the arguments of a launch. Every argument has an 8-byte slot, and `pointers[i]` is the address of slot i. So the list of
 * pointers for `cuLaunchKernel` is written once, and each launch only fills slots. The driver reads the slots before the call
 * returns, so one block serves all launches.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { DTYPE_BYTES, type Dtype } from '../../ir/values/dtype.ts'
import type { ArgSpec, ArgValue, DeviceBuffer, Entry, MatrixValue } from '../device.ts'
import { isMatrix } from '../device.ts'
import { type CudaDriver, check } from './driver.ts'

/** CUDA's limit of 4 KiB of parameters, in 8-byte slots. */
export const MAX_ARGUMENTS = 512

/** C type of a scalar parameter in the kernel's signature. */
const SCALAR_C_TYPE: Readonly<Record<Dtype, 'int' | 'unsigned' | 'float' | 'double'>> = {
  i32: 'int',
  u32: 'unsigned',
  f32: 'float',
  f64: 'double',
  f16: 'float',
  bf16: 'float',
  i8: 'int',
  u8: 'int',
  bool: 'int',
}

export type ArgumentBlock = ReturnType<typeof argumentBlock>

/** @param addressOf returns the address of a host block that never moves */
export function argumentBlock(addressOf: (block: ArrayBuffer) => bigint) {
  const external = new Set<number>()
  const slots = new ArrayBuffer(MAX_ARGUMENTS * 8)
  const base = addressOf(slots)
  const pointers = BigUint64Array.from({ length: MAX_ARGUMENTS }, (_, i) => base + BigInt(8 * i))
  const u64 = new BigUint64Array(slots)
  const i32 = new Int32Array(slots)
  const u32 = new Uint32Array(slots)
  const f32 = new Float32Array(slots)
  const f64 = new Float64Array(slots)
  /** Sets an argument that is stored at a host address outside of the block. */
  const setExternal = (slot: number, address: bigint): void => {
    pointers[slot] = address
    external.add(slot)
  }
  /** Resets all arguments to their slots. */
  const clear = (): void => {
    for (const slot of external) pointers[slot] = base + BigInt(8 * slot)
    external.clear()
  }
  const setPointer = (slot: number, address: bigint): void => {
    u64[slot] = address
  }
  const setScalar = (slot: number, dtype: Dtype, value: number): void => {
    const type = SCALAR_C_TYPE[dtype]
    if (type === 'double') f64[slot] = value
    else if (type === 'float') f32[2 * slot] = value
    else if (type === 'int') i32[2 * slot] = value
    else u32[2 * slot] = value
  }
  return { pointers, setExternal, clear, setPointer, setScalar }
}

/**
 * Fills the argument block with checked arguments. `addressOf` returns the address of a buffer. `describe` returns the host
 * address of a matrix descriptor.
 */
export function packArguments(
  block: ArgumentBlock,
  entry: Entry,
  args: readonly ArgValue[],
  addressOf: (value: DeviceBuffer, spec: ArgSpec) => bigint,
  describe?: (value: MatrixValue, spec: MatrixSpec) => bigint,
): void {
  block.clear()
  for (const [slot, value] of args.entries()) {
    const spec = entry.args[slot]!
    if (typeof value === 'number') block.setScalar(slot, spec.dtype, value)
    else if (!isMatrix(value)) block.setPointer(slot, addressOf(value, spec))
    else block.setExternal(slot, describe!(value, spec as MatrixSpec))
  }
}

// TMA descriptors (`CUtensorMap`): buffers as matrices, from which instructions of compute capability 9.0
// copy boxes. The driver encodes a descriptor from an address and sizes, and a launch takes it by value.

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
  /** Latest descriptor of each argument, because launches are repeated with the same arguments. */
  readonly #latest = new WeakMap<MatrixSpec, EncodedMap>()

  constructor(private readonly driver: CudaDriver) {}

  /** Returns the host address of a descriptor for the next launch. @throws SptError `device/matrix` */
  encode(spec: MatrixSpec, address: bigint, rows: number, columns: number): bigint {
    const latest = this.#latest.get(spec)
    if (latest && latest.address === address && latest.rows === rows && latest.columns === columns)
      return latest.descriptor
    const { cuTensorMapEncodeTiled } = this.driver.calls
    const stride = columns * DTYPE_BYTES[spec.dtype]
    const reject = (message: string, expected: string): never =>
      failWith('device/matrix', message, { expected })
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
    const start = this.driver.addressOf(block)
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
    check(this.driver, 'cuTensorMapEncodeTiled', code)
    this.#latest.set(spec, { address, rows, columns, block, descriptor })
    return descriptor
  }
}
