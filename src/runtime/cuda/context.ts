/**
 * One context with one stream: making it current, waiting for it, and what happens to it after a fault.
 */
import { setImmediate, setTimeout } from 'node:timers/promises'
import { fail } from '../../ast/diagnostic.ts'
import type { Chip } from './chip.ts'
import { type CudaDriver, callError, check, type DriverCalls, type Handle } from './driver.ts'
import {
  CUDA,
  CudaCallError,
  callFailed,
  faulted,
  isSticky,
  type MemoryState,
  outOfMemory,
} from './errors.ts'

const STREAM_NON_BLOCKING = 1
/** Waiting polls without a pause for this long, then between events, then every millisecond. */
const SPIN_MS = 0.2
const YIELD_MS = 20

export class CudaContext {
  readonly driver: CudaDriver
  readonly calls: DriverCalls
  readonly chip: Chip & { readonly device: number }
  readonly stream: Handle
  readonly #handle: Handle
  readonly #memoryState: (asked: number, label: string) => MemoryState
  /** Kernels queued since the stream was last seen idle: the suspects of a fault. */
  #inFlight: string[] = []
  #fault: string | undefined
  #disposed = false

  constructor(
    driver: CudaDriver,
    chip: Chip & { readonly device: number },
    memoryState: (asked: number, label: string) => MemoryState,
  ) {
    this.driver = driver
    this.calls = driver.calls
    this.chip = chip
    this.#memoryState = memoryState
    const out = new BigUint64Array(1)
    this.check('cuDevicePrimaryCtxRetain', this.calls.cuDevicePrimaryCtxRetain(out, chip.device))
    this.#handle = out[0]!
    try {
      this.check('cuCtxSetCurrent', this.calls.cuCtxSetCurrent(this.#handle))
      this.check('cuStreamCreate', this.calls.cuStreamCreate(out, STREAM_NON_BLOCKING))
    } catch (error) {
      this.calls.cuDevicePrimaryCtxRelease_v2(chip.device)
      throw error
    }
    this.stream = out[0]!
  }

  /** Whether calls still make sense: neither disposed of nor faulted. */
  get usable(): boolean {
    return !this.#disposed && this.#fault === undefined
  }

  check(call: keyof DriverCalls, code: number): void {
    check(this.driver, call, code)
  }

  /** Refuses to go on where the device is gone, and makes its context current. */
  enter(): void {
    if (this.#disposed) {
      fail({ code: 'device/disposed', message: `the device ${this.chip.name} was disposed of` })
    }
    if (this.#fault) {
      fail({
        code: 'device/lost',
        message: `the device ${this.chip.name} cannot be used any more after a fault: ${this.#fault}`,
        hint: 'start a new process; CUDA refuses all work in one where a kernel has faulted',
      })
    }
    this.check('cuCtxSetCurrent', this.calls.cuCtxSetCurrent(this.#handle))
  }

  /** Enters, and turns failed driver calls into what a caller sees. */
  within<T>(during: string, body: () => T): T {
    try {
      this.enter()
      return body()
    } catch (error) {
      throw this.translate(error, during)
    }
  }

  /** `exactly` names the kernel where it is known that no other can have faulted. */
  translate(error: unknown, during: string, exactly?: string): unknown {
    if (!(error instanceof CudaCallError)) return error
    if (isSticky(error.code)) {
      const kernels = exactly === undefined ? this.#inFlight : [exactly]
      const fault = faulted(error, kernels, exactly !== undefined)
      this.#fault = fault.diagnostics[0]!.message
      return fault
    }
    if (error.code === CUDA.OUT_OF_MEMORY) return outOfMemory(this.#memoryState(0, during))
    return callFailed(error, during)
  }

  /** Notes a queued kernel; with `wait`, waits for it, so that a fault is its own. */
  launched(kernel: string, wait: boolean): void {
    if (!wait) {
      this.#inFlight.push(kernel)
      return
    }
    const code = this.calls.cuStreamSynchronize(this.stream)
    if (code === CUDA.SUCCESS) return
    throw this.translate(callError(this.driver, 'cuStreamSynchronize', code), `kernel '${kernel}'`, kernel)
  }

  /** Resolves when the stream has nothing left to do. */
  async idle(during: string): Promise<void> {
    const start = performance.now()
    // Disposing has waited for the stream itself.
    while (!this.#disposed) {
      const done = this.within(during, () => {
        const code = this.calls.cuStreamQuery(this.stream)
        if (code === CUDA.NOT_READY) return false
        this.check('cuStreamQuery', code)
        return true
      })
      if (done) {
        this.#inFlight = []
        return
      }
      const waited = performance.now() - start
      if (waited > YIELD_MS) await setTimeout(1)
      else if (waited > SPIN_MS) await setImmediate()
    }
  }

  /** Before memory or code is taken away, what may still use it has to end. The context must be current. */
  drain(): void {
    if (this.#inFlight.length === 0) return
    this.check('cuStreamSynchronize', this.calls.cuStreamSynchronize(this.stream))
    this.#inFlight = []
  }

  /** Ends the context; `release` gives back what lives in it. Does nothing the second time. */
  dispose(release: () => void): void {
    if (this.#disposed) return
    this.#disposed = true
    // After a fault these calls only return its code again; the context is released all the same.
    this.calls.cuCtxSetCurrent(this.#handle)
    this.calls.cuStreamSynchronize(this.stream)
    release()
    this.calls.cuStreamDestroy_v2(this.stream)
    this.calls.cuDevicePrimaryCtxRelease_v2(this.chip.device)
  }
}
