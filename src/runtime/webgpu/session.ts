/**
 * A `GPUDevice` with its lifetime. Every wait ends when the device is lost or disposed of, unlike some promises of the API.
 * Validation errors become rejections instead of console output.
 */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { failDisposed } from '../device-checks.ts'

export class Session {
  #lost: GPUDeviceLostInfo | undefined
  #disposed = false
  readonly #waiting = new Set<() => void>()
  #uncapturedError: string | undefined
  #unawaited: Promise<void> | undefined
  /** Buffers to destroy with the session, if its device belongs to the caller. */
  readonly #buffers = new Set<GPUBuffer>()

  /** @param isOwn - `dispose` destroys the device, and all of its errors are ours */
  constructor(
    readonly device: GPUDevice,
    readonly name: string,
    readonly isOwn = true,
  ) {
    if (isOwn)
      device.addEventListener('uncapturederror', (event) => {
        event.preventDefault()
        this.#uncapturedError ??= event.error.message
      })
    void device.lost.then((info) => {
      this.#lost = info
      for (const wake of this.#waiting) wake()
    })
  }

  /** Throws if the device is unusable; `call` is the caller's operation. */
  checkAlive(call: string): void {
    if (this.#disposed) failDisposed(this.name, call)
    if (this.#lost) throw this.#lostError(call, this.#lost)
    const message = this.#uncapturedError
    this.#uncapturedError = undefined
    if (message !== undefined) throw validationError(call, message)
  }

  createBuffer(descriptor: GPUBufferDescriptor): GPUBuffer {
    const buffer = this.device.createBuffer(descriptor)
    this.#buffers.add(buffer)
    return buffer
  }

  destroy(buffer: GPUBuffer): void {
    this.#buffers.delete(buffer)
    buffer.destroy()
  }

  /** Runs a call that does not wait; the next call that does reports its error. */
  unawaited(body: () => void): void {
    const { failure } = this.scoped(body)
    const noted = Promise.all([this.#unawaited, failure]).then(([, f]) => {
      this.#uncapturedError ??= f?.message
      if (this.#unawaited === noted) this.#unawaited = undefined
    })
    this.#unawaited = noted
  }

  #lostError(call: string, info: GPUDeviceLostInfo): SptError {
    return new SptError({
      code: 'device/lost',
      message: `${call}: the device ${this.name} was lost${info.message ? ` (${info.message.trim()})` : ''}`,
      hint: `a kernel may have run too long, or the driver restarted. Type \`device = await devices.webgpu(${this.isOwn ? '' : '{ device: yourNewGPUDevice }'})\`, and for each binding \`binding = await binding.rebuild(device)\``,
    })
  }

  /** Waits for `promise`, or for the end of the device; a rejection becomes `device/validation`. */
  wait<T>(promise: Promise<T>, call: string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (finish: () => void): void => {
        this.#waiting.delete(onEnd)
        try {
          this.checkAlive(call)
          finish()
        } catch (e) {
          reject(e)
        }
      }
      const onEnd = (): void => settle(() => {})
      this.#waiting.add(onEnd)
      const all = this.#unawaited ? this.#unawaited.then(() => promise) : promise
      all.then(
        (value) => settle(() => resolve(value)),
        // A lost device first rejects calls in flight, and then reports the loss, which is the better reason.
        (error: unknown) =>
          setTimeout(() => settle(() => reject(validationError(call, (error as Error).message)))),
      )
      if (this.#disposed || this.#lost) onEnd()
    })
  }

  /** Runs `body`, and reports validation and memory errors later. */
  scoped<T>(body: () => T): { value: T; failure: Promise<GpuFailure | undefined> } {
    const { device } = this
    device.pushErrorScope('out-of-memory')
    device.pushErrorScope('internal')
    device.pushErrorScope('validation')
    let value: T
    let errors: Promise<GPUError | null>[]
    try {
      value = body()
    } finally {
      // A lost device has no scopes left; `wait` reports the loss.
      errors = [1, 2, 3].map(() => device.popErrorScope().catch(() => null))
    }
    const failure = Promise.all(errors).then(([validation, internal, memory]): GpuFailure | undefined => {
      // A failed allocation also causes validation errors, so exhausted memory is reported first.
      if (memory) return { kind: 'memory', message: memory.message }
      if (validation) return { kind: 'validation', message: validation.message }
      return internal ? { kind: 'validation', message: internal.message } : undefined
    })
    return { value, failure }
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return
    this.#disposed = true
    if (this.isOwn) {
      // The loss ends every wait.
      this.device.destroy()
      await this.device.lost
      return
    }
    for (const buffer of this.#buffers) buffer.destroy()
    this.#buffers.clear()
    for (const wake of this.#waiting) wake()
  }
}

export interface GpuFailure {
  readonly kind: 'memory' | 'validation'
  readonly message: string
}

/** Error of an API call that WebGPU rejected although the runtime's checks passed. */
export function validationError(call: string, message: string): SptError {
  return new SptError({
    code: 'device/validation',
    message: `${call}: WebGPU rejected a call: ${firstLine(message)}`,
    hint: 'please report it with the program, its schedule and the device; another schedule may work',
    notes: [message.trim()],
  })
}

export const firstLine = (text: string): string => text.trim().split('\n')[0] ?? ''
