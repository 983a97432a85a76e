/** A sparse library in JavaScript, behind the C interface that `data/libraries/cuda.json` calls, on the fake driver. */
import { CudaDevice } from '../../src/runtime/cuda/device.ts'
import type { CFunction, CLibrary } from '../../src/runtime/cuda/ffi.ts'
import { FAKE_CHIP, FakeCompiler, FakeDriver, type FakeKernel } from '../runtime/cuda-fake.ts'

interface Csr {
  readonly rows: number
  readonly offsets: bigint
  readonly indices: bigint
  readonly values: bigint
  readonly entries: number
}
interface Dense {
  readonly rows: number
  readonly columns: number
  readonly ld: number
  readonly values: bigint
  readonly byRows: boolean
}

/** Kernels of our own that write nothing: whatever they are called, they are there. */
class Anything extends Map<string, FakeKernel> {
  override has(): boolean {
    return true
  }
  override get(name: string): FakeKernel {
    return super.get(name) ?? (() => undefined)
  }
}

const out = (to: unknown, value: bigint): number => {
  ;(to as BigUint64Array)[0] = value
  return 0
}

export class FakeLibrary {
  readonly driver = new FakeDriver()
  readonly device: CudaDevice
  /** What was made and not given back. */
  readonly live = new Map<bigint, unknown>()
  readonly log: string[] = []
  /** Statuses that calls return, by name. */
  readonly failing = new Map<string, number>()
  /** Added to each sum: a library that is wrong. */
  error = 0
  #next = 1n
  #stream = 0n

  constructor(there = true) {
    Object.assign(this.driver, { kernels: new Anything(), memoryBytes: 2 ** 26 })
    const machine = { env: {}, home: '/', exists: () => false, list: () => [], real: (p: string) => p }
    this.device = new CudaDevice({
      driver: this.driver,
      chip: { ...FAKE_CHIP, memoryBytes: 2 ** 26 },
      compiler: new FakeCompiler(),
      versions: 'fake',
      syncEachLaunch: false,
      overlap: false,
      libraries: { ffi: { load: (path) => this.#load(path, there) }, machine },
    })
  }

  #load(path: string, there: boolean): CLibrary {
    if (!there || !path.startsWith('libcusparse')) throw new Error(`${path}: no such file`)
    const bind = (prototype: string): CLibrary['bind'] extends (p: string) => infer R ? R : never => {
      const name = /^int32_t (\w+)\(/.exec(prototype)![1]!
      const call: CFunction = (...args) => {
        this.log.push(name)
        return this.failing.get(name) ?? this.#call(name, args)
      }
      return Object.assign(call, { async: () => undefined })
    }
    return { path, bind }
  }

  #make(to: unknown, what: unknown): number {
    this.live.set(this.#next, what)
    return out(to, this.#next++)
  }

  #call(name: string, a: readonly unknown[]): number {
    const n = a.map(Number)
    if (name === 'cusparseCreate') return this.#make(a[0], 'handle')
    if (name === 'cusparseGetVersion') {
      ;(a[1] as Int32Array)[0] = 12507
      return 0
    }
    if (name === 'cusparseSetStream') {
      this.#stream = a[1] as bigint
      return 0
    }
    if (name === 'cusparseCreateCsr') {
      const [offsets, indices, values] = a.slice(4, 7) as bigint[]
      const csr = { rows: n[1]!, entries: n[3]!, offsets: offsets!, indices: indices!, values: values! }
      return this.#make(a[0], csr satisfies Csr)
    }
    if (name === 'cusparseCreateDnMat')
      return this.#make(a[0], {
        rows: n[1]!,
        columns: n[2]!,
        ld: n[3]!,
        values: a[4] as bigint,
        byRows: a[6] === 2,
      } satisfies Dense)
    if (name === 'cusparseCreateDnVec')
      return this.#make(a[0], {
        rows: n[1]!,
        columns: 1,
        ld: 1,
        values: a[2] as bigint,
        byRows: true,
      } satisfies Dense)
    if (name.startsWith('cusparseDestroy')) return this.live.delete(a[0] as bigint) ? 0 : 1
    if (name.endsWith('_bufferSize')) return out(a.at(-1), 64n)
    if (name.endsWith('_preprocess')) return 10
    const vector = name === 'cusparseSpMV'
    const [first, second, third] = (vector ? [a[3], a[4], a[6]] : [a[4], a[5], a[7]]).map((h) =>
      this.live.get(h as bigint),
    )
    this.driver.streams.enqueue(this.#stream, () => {
      if (name === 'cusparseSDDMM') this.#sampled(first as Dense, second as Dense, third as Csr)
      else this.#product(first as Csr, second as Dense, third as Dense)
    })
    return 0
  }

  /** As many words of memory as lie behind an address. */
  #words<T>(address: bigint, of: new (b: ArrayBufferLike, at: number, n: number) => T): T {
    for (const [base, block] of this.driver.memory)
      if (address >= base && address < base + BigInt(block.length)) {
        const at = Number(address - base)
        return new of(block.buffer, block.byteOffset + at, Math.floor((block.length - at) / 4))
      }
    throw new Error(`no memory at ${address}`)
  }

  #product(A: Csr, B: Dense, C: Dense): void {
    const [offsets, indices] = [this.#words(A.offsets, Int32Array), this.#words(A.indices, Int32Array)]
    const [a, b, c] = [A, B, C].map((x) => this.#words(x.values, Float32Array)) as Float32Array[]
    for (let i = 0; i < A.rows; i++)
      for (let f = 0; f < C.columns; f++) {
        let sum = this.error
        for (let p = offsets[i]!; p < offsets[i + 1]!; p++) sum += a![p]! * b![indices[p]! * B.ld + f]!
        c![i * C.ld + f] = sum
      }
  }

  #sampled(X: Dense, Y: Dense, C: Csr): void {
    const [offsets, indices] = [this.#words(C.offsets, Int32Array), this.#words(C.indices, Int32Array)]
    const [x, y, c] = [X, Y, C].map((m) => this.#words(m.values, Float32Array)) as Float32Array[]
    const at = (m: Dense, i: number, j: number): number => (m.byRows ? i * m.ld + j : j * m.ld + i)
    for (let i = 0; i < C.rows; i++)
      for (let p = offsets[i]!; p < offsets[i + 1]!; p++) {
        let sum = this.error
        for (let k = 0; k < X.columns; k++) sum += x![at(X, i, k)]! * y![at(Y, k, indices[p]!)]!
        c![p] = sum
      }
  }
}
