/** cuSPARSE's generic interface: sparse × vector, sparse × dense and sampled dense × dense, row-major, 32-bit indices. */
import type { Csr } from '../gpu/matrix.ts'
import { PROTOTYPES } from './cusparse-prototypes.ts'
import { Library, StatusError } from './library.ts'
import type { Memory, PeerStream } from './stream.ts'

const INDEX_32 = 2
const BASE_0 = 0
const ORDER = { column: 1, row: 2 } as const
const TYPE = { f32: 0, f16: 2 } as const
const OP = { plain: 0, transposed: 1 } as const
const NOT_SUPPORTED = 10

/** `cusparseSpMMAlg_t`, the ones for matrices by rows. */
export const CSR_ALGORITHMS = { DEFAULT: 0, ALG1: 4, ALG2: 6, ALG3: 12 } as const
/** `cusparseSpMVAlg_t`, the ones for matrices by rows. */
export const VECTOR_ALGORITHMS = { DEFAULT: 0, ALG1: 2, ALG2: 3 } as const
const BLOCKED_ELL_ALGORITHM = 13
const BSR_ALGORITHM = 14

export type Element = keyof typeof TYPE

/** A call on the stream, ready to be repeated; `free` gives back what it holds. */
export interface Prepared {
  readonly enqueue: () => void
  /** Milliseconds on the host's clock for buffer size and preprocessing; bytes of workspace. */
  readonly facts: { readonly 'preprocessing ms': number; readonly workspace: number }
  free(): void
}

/** A dense matrix in device memory. */
export interface Dense {
  readonly memory: Memory
  readonly rows: number
  readonly columns: number
  readonly order?: keyof typeof ORDER
}

/** One sparse matrix's arrays in device memory. */
export interface CsrMemory {
  readonly of: Pick<Csr, 'rows' | 'columns'> & { readonly nonzeros: number }
  /** Of the values; f32 if left out. */
  readonly type?: Element
  readonly indptr: Memory
  readonly indices: Memory
  readonly values: Memory
}

export class CuSparse {
  readonly #library: Library<keyof typeof PROTOTYPES>
  readonly #one = Float32Array.of(1)
  readonly #zero = Float32Array.of(0)

  /** @throws Error where the library is not there */
  constructor(stream: PeerStream) {
    this.#library = new Library<keyof typeof PROTOTYPES>(stream, {
      file: 'libcusparse',
      sister: 'cusparse',
      needs: ['libnvJitLink'],
      prototypes: PROTOTYPES,
      create: 'cusparseCreate',
      destroy: 'cusparseDestroy',
      setStream: 'cusparseSetStream',
      getVersion: 'cusparseGetVersion',
    })
  }

  get version(): number {
    return this.#library.version
  }

  /** `bits`: the values in f16. */
  upload(A: Csr, bits?: Uint16Array): CsrMemory {
    const { stream } = this.#library
    return {
      ...(bits ? { type: 'f16' as const } : {}),
      of: { rows: A.rows, columns: A.columns, nonzeros: A.indices.length },
      indptr: stream.upload(A.indptr),
      indices: stream.upload(A.indices),
      values: stream.upload(bits ?? A.values),
    }
  }

  release(A: CsrMemory): void {
    this.#library.stream.free(A.indptr, A.indices, A.values)
  }

  /** y = A x in f32. */
  spmv(A: CsrMemory, x: Memory, y: Memory, algorithm: keyof typeof VECTOR_ALGORITHMS): Prepared {
    const { handle } = this.#library
    const a = this.#csr(A)
    const vectors = [this.#vector(x, A.of.columns), this.#vector(y, A.of.rows)] as const
    const [from, to] = vectors
    const head = [
      handle,
      OP.plain,
      this.#one,
      a,
      from,
      this.#zero,
      to,
      TYPE.f32,
      VECTOR_ALGORITHMS[algorithm],
    ]
    return this.#prepared('SpMV', head, a, vectors, 'cusparseDestroyDnVec')
  }

  /** C = A B in the type of A's values, sums in f32. */
  spmm(A: CsrMemory, B: Dense, C: Dense, algorithm: keyof typeof CSR_ALGORITHMS): Prepared {
    return this.#spmm(this.#csr(A), B, C, A.type ?? 'f32', CSR_ALGORITHMS[algorithm])
  }

  /** The same for blocks of f16, sums in f32: block e holds `values[e]`, row-major. */
  spmmBlocks(
    shape: {
      readonly blockRows: number
      readonly blockColumns: number
      readonly blocks: number
      readonly b: number
    },
    arrays: Omit<CsrMemory, 'of'>,
    B: Dense,
    C: Dense,
  ): Prepared {
    const { blockRows, blockColumns, blocks, b } = shape
    const { indptr, indices, values } = arrays
    const A = this.#library.create(
      'cusparseCreateBsr',
      blockRows,
      blockColumns,
      blocks,
      b,
      b,
      indptr.address,
      indices.address,
      values.address,
      INDEX_32,
      INDEX_32,
      BASE_0,
      TYPE.f16,
      ORDER.row,
    )
    return this.#spmm(A, B, C, 'f16', BSR_ALGORITHM)
  }

  /** The same with as many blocks in each row of blocks; columns of −1 are padding. Values are rows × width. */
  spmmBlockedEll(
    shape: { readonly rows: number; readonly columns: number; readonly b: number; readonly width: number },
    indices: Memory,
    values: Memory,
    B: Dense,
    C: Dense,
  ): Prepared {
    const { rows, columns, b, width } = shape
    const A = this.#library.create(
      'cusparseCreateBlockedEll',
      rows,
      columns,
      b,
      width,
      indices.address,
      values.address,
      INDEX_32,
      BASE_0,
      TYPE.f16,
    )
    return this.#spmm(A, B, C, 'f16', BLOCKED_ELL_ALGORITHM)
  }

  /** C = X Yᵀ at C's nonzeros, in f32; Y as it lies, or taken for its transpose stored by columns. */
  sddmm(X: Dense, Y: Dense, C: CsrMemory, how: 'transposed' | 'by columns'): Prepared {
    const [h, op] = [this.#library.handle, how === 'transposed' ? OP.transposed : OP.plain]
    const x = this.#dense(X, 'f32')
    const y = this.#dense(
      how === 'transposed' ? Y : { memory: Y.memory, rows: Y.columns, columns: Y.rows, order: 'column' },
      'f32',
    )
    const c = this.#csr(C)
    const head = [h, OP.plain, op, this.#one, x, y, this.#zero, c, TYPE.f32, 0]
    return this.#prepared('SDDMM', head, c, [x, y])
  }

  close(): void {
    this.#library.close()
  }

  #spmm(A: bigint, B: Dense, C: Dense, type: Element, algorithm: number): Prepared {
    const b = this.#dense(B, type)
    const c = this.#dense(C, type)
    const { handle } = this.#library
    const head = [handle, OP.plain, OP.plain, this.#one, A, b, this.#zero, c, TYPE.f32, algorithm]
    return this.#prepared('SpMM', head, A, [b, c])
  }

  /** Buffer and preprocessing of a routine; all three calls begin with the same arguments. */
  #prepared(
    routine: 'SpMV' | 'SpMM' | 'SDDMM',
    head: readonly unknown[],
    sparse: bigint,
    dense: readonly bigint[],
    destroyDense: 'cusparseDestroyDnMat' | 'cusparseDestroyDnVec' = 'cusparseDestroyDnMat',
  ): Prepared {
    const library = this.#library
    const { stream } = library
    const destroy = (): void => {
      library.status('cusparseDestroySpMat', sparse)
      for (const d of dense) library.status(destroyDense, d)
    }
    stream.enter()
    const start = performance.now()
    let buffer: Memory | undefined
    try {
      const size = new BigUint64Array(1)
      library.call(`cusparse${routine}_bufferSize`, ...head, size)
      buffer = stream.alloc(Number(size[0]!))
      const preprocess = `cusparse${routine}_preprocess` as const
      const status = library.status(preprocess, ...head, buffer.address)
      if (status !== 0 && status !== NOT_SUPPORTED) throw new StatusError(preprocess, status)
      stream.finish()
    } catch (error) {
      stream.free(buffer)
      destroy()
      throw error
    }
    const workspace = buffer
    const all = [...head, workspace.address]
    return {
      facts: { 'preprocessing ms': performance.now() - start, workspace: workspace.bytes },
      enqueue: () => library.call(`cusparse${routine}`, ...all),
      free: () => {
        stream.free(workspace)
        destroy()
      },
    }
  }

  #csr({ of, type = 'f32', indptr, indices, values }: CsrMemory): bigint {
    return this.#library.create(
      'cusparseCreateCsr',
      of.rows,
      of.columns,
      of.nonzeros,
      indptr.address,
      indices.address,
      values.address,
      INDEX_32,
      INDEX_32,
      BASE_0,
      TYPE[type],
    )
  }

  #vector(memory: Memory, length: number): bigint {
    return this.#library.create('cusparseCreateDnVec', length, memory.address, TYPE.f32)
  }

  #dense({ memory, rows, columns, order = 'row' }: Dense, type: Element): bigint {
    const ld = order === 'row' ? columns : rows
    return this.#library.create(
      'cusparseCreateDnMat',
      rows,
      columns,
      ld,
      memory.address,
      TYPE[type],
      ORDER[order],
    )
  }
}
