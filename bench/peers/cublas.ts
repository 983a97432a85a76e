/** cuBLAS: products of dense row-major matrices, which to it are Cᵀ = Bᵀ Aᵀ by columns. */
import { Library } from './library.ts'
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

/** `cudaDataType_t` of all three matrices. */
const TYPE = { f32: 0, tf32: 0, f16: 2, bf16: 14 } as const
/** `cublasComputeType_t`: sums are in f32. */
const COMPUTE = { f32: 68, tf32: 77, f16: 68, bf16: 68 } as const
const DEFAULT_ALGORITHM = -1
/** What NVIDIA advises for this chip; without one of its own the library allocates, which a capture refuses. */
const WORKSPACE = 32 * 2 ** 20

export type Arithmetic = keyof typeof COMPUTE

export class CuBlas {
  readonly #library: Library<keyof typeof PROTOTYPES>
  readonly #one = Float32Array.of(1)
  readonly #zero = Float32Array.of(0)

  /** @throws Error where the library is not there */
  constructor(stream: PeerStream) {
    const library = new Library<keyof typeof PROTOTYPES>(stream, {
      file: 'libcublas',
      sister: 'cublas',
      needs: ['libcublasLt'],
      prototypes: PROTOTYPES,
      create: 'cublasCreate_v2',
      destroy: 'cublasDestroy_v2',
      setStream: 'cublasSetStream_v2',
      getVersion: 'cublasGetVersion_v2',
    })
    library.call('cublasSetWorkspace_v2', library.handle, stream.alloc(WORKSPACE).address, WORKSPACE)
    this.#library = library
  }

  get version(): number {
    return this.#library.version
  }

  /** A call of C [m, n] = A [m, k] B, where B is [k, n], or [n, k] that is taken `transposed`. */
  gemm(
    arithmetic: Arithmetic,
    [m, n, k]: readonly [number, number, number],
    A: Memory,
    B: Memory,
    C: Memory,
    layout: 'stored' | 'transposed' = 'stored',
  ): () => void {
    const type = TYPE[arithmetic]
    const args = [
      this.#library.handle,
      layout === 'stored' ? 0 : 1,
      0,
      n,
      m,
      k,
      this.#one,
      B.address,
      type,
      layout === 'stored' ? n : k,
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
    return () => this.#library.call('cublasGemmEx', ...args)
  }

  close(): void {
    this.#library.close()
  }
}
