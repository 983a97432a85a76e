/** cuBLAS: products of dense row-major matrices, which to it are Cᵀ = Bᵀ Aᵀ by columns. */
import { type Library, openLibrary, StatusError } from './library.ts'
import type { Memory, PeerStream } from './stream.ts'

const PROTOTYPES = {
  cublasCreate_v2: 'void *',
  cublasDestroy_v2: 'uintptr_t',
  cublasGetVersion_v2: 'uintptr_t, void *',
  cublasSetStream_v2: 'uintptr_t, uintptr_t',
  cublasSetWorkspace_v2: 'uintptr_t, uintptr_t, size_t',
  cublasGemmEx:
    'uintptr_t, int32_t, int32_t, int32_t, int32_t, int32_t, void *, uintptr_t, int32_t, int32_t, uintptr_t, int32_t, int32_t, void *, uintptr_t, int32_t, int32_t, int32_t, int32_t',
} as const

const TYPE = { f32: 0, f16: 2 } as const
/** `cublasComputeType_t`: sums are in f32. */
const COMPUTE = { f32: 68, tf32: 77, f16: 68 } as const
const DEFAULT_ALGORITHM = -1
/** What NVIDIA advises for this chip; without one of its own the library allocates, which a capture refuses. */
const WORKSPACE = 32 * 2 ** 20

export type Arithmetic = keyof typeof COMPUTE

export class CuBlas {
  readonly path: string
  readonly version: number
  readonly #calls: Library<keyof typeof PROTOTYPES>['calls']
  readonly #handle: bigint
  readonly #stream: PeerStream
  readonly #one = Float32Array.of(1)
  readonly #zero = Float32Array.of(0)

  /** @throws Error where the library is not there */
  constructor(stream: PeerStream) {
    this.#stream = stream
    stream.enter()
    const library = openLibrary(stream.ffi, 'libcublas', 'cublas', PROTOTYPES, ['libcublasLt'])
    this.path = library.path
    this.#calls = library.calls
    const out = new BigUint64Array(1)
    this.#check('cublasCreate_v2', out)
    this.#handle = out[0]!
    this.#check('cublasSetStream_v2', this.#handle, stream.handle)
    this.#check('cublasSetWorkspace_v2', this.#handle, stream.alloc(WORKSPACE).address, WORKSPACE)
    const version = new Int32Array(1)
    this.#check('cublasGetVersion_v2', this.#handle, version)
    this.version = version[0]!
  }

  /** A call of C [m, n] = A [m, k] B [k, n]. */
  gemm(
    arithmetic: Arithmetic,
    [m, n, k]: readonly [number, number, number],
    A: Memory,
    B: Memory,
    C: Memory,
  ): () => void {
    const type = arithmetic === 'f16' ? TYPE.f16 : TYPE.f32
    const args = [
      this.#handle,
      0,
      0,
      n,
      m,
      k,
      this.#one,
      B.address,
      type,
      n,
      A.address,
      type,
      k,
      this.#zero,
      C.address,
      type,
      n,
      COMPUTE[arithmetic],
      DEFAULT_ALGORITHM,
    ]
    return () => this.#check('cublasGemmEx', ...args)
  }

  close(): void {
    this.#stream.enter()
    this.#calls.cublasDestroy_v2(this.#handle)
  }

  #check(call: keyof typeof PROTOTYPES, ...args: unknown[]): void {
    const status = this.#calls[call](...args)
    if (status !== 0) throw new StatusError(call, status)
  }
}
