/**
 * A `GPUDevice` whose end is known: every wait ends when the device is lost or disposed of (the API's own
 * promises need not), and validation errors become rejections instead of console output.
 */
import { SptError } from '../../ast/diagnostic.ts'
import { failDisposed } from '../device-checks.ts'

export class Session {
  readonly device: GPUDevice
  readonly name: string
  #lost: GPUDeviceLostInfo | undefined
  #disposed = false
  readonly #waiting = new Set<() => void>()
  #stray: string | undefined

  constructor(device: GPUDevice, name: string) {
    this.device = device
    this.name = name
    device.addEventListener('uncapturederror', (event) => {
      event.preventDefault()
      this.#stray ??= event.error.message
    })
    void device.lost.then((info) => {
      this.#lost = info
      for (const wake of this.#waiting) wake()
    })
  }

  /** Throws if the device is unusable; `call` is the caller's operation. */
  alive(call: string): void {
    if (this.#disposed) failDisposed(this.name, call)
    if (this.#lost) throw this.#lostError(call, this.#lost)
    const stray = this.#stray
    this.#stray = undefined
    if (stray !== undefined) throw validationError(call, stray)
  }

  #lostError(call: string, info: GPUDeviceLostInfo): SptError {
    return new SptError({
      code: 'device/lost',
      message: `${call}: the device ${this.name} was lost${info.message ? ` (${info.message.trim()})` : ''}`,
      hint: 'a kernel may have run too long, or the driver restarted: open a new device, and `await prepared.rebuild(device)`',
    })
  }

  /** Waits for `promise`, or for the end of the device; a refusal becomes `device/validation`. */
  wait<T>(promise: Promise<T>, call: string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (finish: () => void): void => {
        this.#waiting.delete(ended)
        try {
          this.alive(call)
          finish()
        } catch (e) {
          reject(e)
        }
      }
      const ended = (): void => settle(() => {})
      this.#waiting.add(ended)
      promise.then(
        (value) => settle(() => resolve(value)),
        // A loss rejects the calls under way before it is announced: the announcement is the better reason.
        (error: unknown) =>
          setTimeout(() => settle(() => reject(validationError(call, (error as Error).message)))),
      )
      if (this.#disposed || this.#lost) ended()
    })
  }

  /** Runs `body`, and reports validation and memory errors later. */
  scoped<T>(body: () => T): { value: T; failure: Promise<GpuFailure | undefined> } {
    const { device } = this
    device.pushErrorScope('out-of-memory')
    device.pushErrorScope('internal')
    device.pushErrorScope('validation')
    let value: T
    let popped: Promise<GPUError | null>[]
    try {
      value = body()
    } finally {
      // A lost device has no scopes left; whoever waits learns of the loss from `wait`.
      popped = [1, 2, 3].map(() => device.popErrorScope().catch(() => null))
    }
    const failure = Promise.all(popped).then(([validation, internal, memory]): GpuFailure | undefined => {
      // Using a buffer that could not be had is invalid too, so exhaustion is named first.
      if (memory) return { kind: 'memory', message: memory.message }
      if (validation) return { kind: 'validation', message: validation.message }
      return internal ? { kind: 'validation', message: internal.message } : undefined
    })
    return { value, failure }
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return
    this.#disposed = true
    // The loss that this announces ends every wait.
    this.device.destroy()
    await this.device.lost
  }
}

export interface GpuFailure {
  readonly kind: 'memory' | 'validation'
  readonly message: string
}

/** An API call rejected by WebGPU although the runtime's checks passed. */
export function validationError(call: string, message: string): SptError {
  return new SptError({
    code: 'device/validation',
    message: `${call}: WebGPU refused a call: ${firstLine(message)}`,
    hint: 'please report it with the program, its schedule and the device; another schedule may work',
    notes: [message.trim()],
  })
}

export const firstLine = (text: string): string => text.trim().split('\n')[0] ?? ''
