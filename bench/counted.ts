/** What a conversion asks of a device: commands, transfers, and the host's own time between them. */

import type { Device } from '../src/runtime/device.ts'
import type { Queue } from '../src/storage/engines/device/queue/command-queue.ts'

export interface Counts {
  launches: number
  clears: number
  /** Batches of commands. */
  runs: number
  downloads: number
  downloaded: number
  uploads: number
  allocations: number
  /** Milliseconds spent inside of the device. */
  device: number
}

const nothing = (): Counts => ({
  launches: 0,
  clears: 0,
  runs: 0,
  downloads: 0,
  downloaded: 0,
  uploads: 0,
  allocations: 0,
  device: 0,
})

/** The same device, and what was asked of it since `reset`. */
export function counted(device: Device): {
  readonly device: Device
  readonly counts: () => Counts
  reset(): void
} {
  let c = nothing()
  const timed = async <T>(f: () => Promise<T>): Promise<T> => {
    const t = performance.now()
    const p = f()
    // The cpu device works before it returns; others are waited for.
    if (device.kind === 'cpu') c.device += performance.now() - t
    const result = await p
    if (device.kind !== 'cpu') c.device += performance.now() - t
    return result
  }
  const own: Partial<Device> = {
    alloc: (bytes, label) => {
      c.allocations++
      return device.alloc(bytes, label)
    },
    upload: (buffer, data, offset) => {
      c.uploads++
      return timed(() => device.upload(buffer, data, offset))
    },
    download: (buffer, ...range) => {
      c.downloads++
      c.downloaded += range[0] ?? buffer.bytes
      return timed(() => device.download(buffer, ...range))
    },
    compile: (module) => timed(() => device.compile(module)),
    run: (commands) => {
      c.runs++
      for (const command of commands) c[command.kind === 'clear' ? 'clears' : 'launches']++
      return timed(() => device.run(commands))
    },
  }
  const wrapped = new Proxy(device, {
    get: (of, name) => {
      const value: unknown = Reflect.get(own, name) ?? Reflect.get(of, name)
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
  return {
    device: wrapped,
    counts: () => c,
    reset: () => {
      c = nothing()
    },
  }
}

/** How often each operation is launched, by the beginning of its kernel's key. */
export function launchesByKey(queue: Queue): { readonly found: Map<string, number>; stop(): void } {
  const found = new Map<string, number>()
  const { launch } = queue
  queue.launch = (spec) => {
    const name = spec.key
      .replace(/\S*[(@]\S*/g, '')
      .replace(/[\d\s]+/g, ' ')
      .trim()
      .slice(0, 28)
    found.set(name, (found.get(name) ?? 0) + 1)
    launch.call(queue, spec)
  }
  return {
    found,
    stop: () => {
      queue.launch = launch
    },
  }
}
