/** A device behind whose buffers lie bytes that nobody may write, and contents that nobody may depend on. */
import type { Executable } from '../../src/run/execution/execute.ts'
import type { Device, DeviceBuffer } from '../../src/runtime/device.ts'

/** More than an access of 16 bytes beyond the end; what lies further behind, WebGPU takes to the last bytes. */
const GUARD = 256
const PATTERN = 0xa5

export interface Guarded {
  readonly device: Device
  /** Names of buffers behind which something was written. */
  broken(): Promise<readonly string[]>
}

export function guarded(of: Device): Guarded {
  /** Where each ends, and what lies behind it. */
  const held = new Map<DeviceBuffer, { readonly end: number; behind: number }>()
  const fresh = new Set<DeviceBuffer>()
  const settle = async (): Promise<void> => {
    const now = [...fresh]
    fresh.clear()
    for (const b of now) await of.upload(b, new Uint8Array(b.bytes).fill(PATTERN))
  }
  const own: Partial<Device> = {
    alloc(bytes, label) {
      // Elements are of 8 bytes at most, and of a whole number of them.
      const end = Math.ceil(bytes / 16) * 16
      const buffer = of.alloc(end + GUARD, label)
      held.set(buffer, { end, behind: PATTERN })
      fresh.add(buffer)
      const free = buffer.free.bind(buffer)
      buffer.free = () => {
        held.delete(buffer)
        fresh.delete(buffer)
        free()
      }
      return buffer
    },
    async upload(...args) {
      await settle()
      return of.upload(...args)
    },
    async run(commands) {
      await settle()
      // What is cleared is cleared with what lies behind it.
      for (const c of commands) {
        const of = c.kind === 'clear' ? held.get(c.buffer) : undefined
        if (of) of.behind = 0
      }
      return of.run(commands)
    },
  }
  const device = new Proxy(of, {
    get(target, name) {
      const value: unknown = Reflect.get(own, name) ?? Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return {
    device,
    async broken() {
      await settle()
      const out: string[] = []
      for (const [b, { end, behind }] of held) {
        const bytes = new Uint8Array(await of.download(b)).subarray(end)
        if (bytes.some((x) => x !== behind)) out.push(b.label)
      }
      return out
    },
  }
}

/** Other bytes in all that a run writes: whole numbers that are no index, NaN, or what was there in another run. */
export async function spoil(executable: Executable, byte: (k: number) => number): Promise<void> {
  const { device, plan } = executable.program
  for (const b of plan.buffers) {
    const memory = executable.memory.get(b.name)
    if (!memory || !(b.role === 'local' || b.role === 'out')) continue
    const bytes = memory.bytes - GUARD
    if (bytes > 0)
      await device.upload(
        memory,
        Uint8Array.from({ length: bytes }, (_, k) => byte(k)),
      )
  }
}
