/**
 * Prepared kernels that were garbage-collected without `free()`. Their device memory stays allocated until the device is disposed of,
 * so that a leak shows as an exhausted device, far from its cause. In development a warning names where each was made: `NODE_ENV` is neither
 * `production` nor `test`, or `SPT_LEAKS` is 1; `SPT_LEAKS=0` switches it off.
 */
import type { Device } from '../../runtime/device.ts'
import { disposedDevices } from '../../runtime/device-checks.ts'

/** A kernel that has not been freed, without references that would keep it alive. */
interface Unfreed {
  readonly kernel: string
  readonly device: WeakRef<Device>
  readonly deviceText: string
  readonly bytes: number
  readonly stack: string
}

interface Registry {
  register(target: object, held: Unfreed, token: object): void
  unregister(token: object): void
}

export class LeakDetector {
  readonly #registry: Registry

  /** @param registry registers a callback for collected targets, which receives the registered data */
  constructor(
    registry: (collected: (held: Unfreed) => void) => Registry,
    warn: (text: string) => void = (text) => console.warn(text),
  ) {
    this.#registry = registry((held) => {
      const device = held.device.deref()
      if (device && !disposedDevices.has(device)) warn(warningOf(held))
    })
  }

  /** Watches a binding; the current stack identifies where it was created. */
  watch(prepared: object, kernel: string, device: Device, bytes: number): void {
    // On the CPU, memory is garbage-collected with the kernel.
    if (device.kind === 'cpu') return
    const held = { kernel, bytes, device: new WeakRef(device), deviceText: `${device.kind} (${device.name})` }
    this.#registry.register(prepared, { ...held, stack: new Error().stack ?? '' }, prepared)
  }

  forget(prepared: object): void {
    this.#registry.unregister(prepared)
  }
}

const mib = (bytes: number): string => `${(bytes / 2 ** 20).toPrecision(3)} MiB`

const warningOf = ({ kernel, deviceText, bytes, stack }: Unfreed): string =>
  `sparsetile: binding of ${kernel} was collected without free(); its ${mib(bytes)} on ${deviceText} stay allocated. ` +
  `It was made at ${placeIn(stack)}`

/** Matches the file in a stack frame. Frames of this package share its folder, or its file in a bundle. */
const FILE = /(?:[(@]|at (?:async )?)((?:file:\/\/|https?:\/\/|\/|[A-Z]:\\)[^()\s]*):\d+:\d+\)?$/
const fileOf = (frame: string): string | undefined => FILE.exec(frame.trim())?.[1]

/** The innermost stack frame outside of this package, as text. */
function placeIn(stack: string): string {
  const frames = stack.split('\n').filter((line) => fileOf(line) !== undefined)
  const own = fileOf(frames[0] ?? '')?.replace(/(?:api[/\\](?:[^/\\]+[/\\])?|chunks[/\\])?[^/\\]*$/, '')
  const place = frames.find((f) => own === undefined || !fileOf(f)!.startsWith(own))
  return (place ?? 'a place that the stack does not show').trim().replace(/^at (?:async )?/, '')
}

function isDevelopment(): boolean {
  const { process: here } = globalThis as { process?: { env?: Readonly<Record<string, string | undefined>> } }
  const setting = here?.env?.SPT_LEAKS
  if (setting === '0' || setting === '1') return setting === '1'
  return !['production', 'test'].includes(environment())
}

/** The value of NODE_ENV, which bundlers substitute; `production` in browsers without `process`. */
function environment(): string {
  try {
    return process.env.NODE_ENV ?? ''
  } catch {
    return 'production'
  }
}

/** Reports leaks in development; `null` otherwise. */
export const leakDetector: LeakDetector | null =
  isDevelopment() && typeof FinalizationRegistry !== 'undefined'
    ? new LeakDetector((collected) => new FinalizationRegistry(collected))
    : null
