/** Contents of an executable's buffers: poisoned, to detect unwritten elements, saved and restored. */
import type { Buffer } from '../../ir/statements/loops.ts'
import type { DeviceBuffer } from '../../runtime/device.ts'
import type { Bound } from '../bind/index.ts'
import type { Program } from '../compile/compiled-program.ts'
import { elementBytes } from '../compile/device-limits.ts'
import { type BufferLocation, byteLength, elements } from './buffer-layout.ts'

export interface Contents {
  readonly program: Program
  readonly bound: Bound
  memoryOf(name: string): DeviceBuffer
}

/** Nonempty buffers of these roles. Arenas are excluded, because they are read-only. */
function* within({ program, bound, memoryOf }: Contents, roles: readonly Buffer['role'][]) {
  for (const b of program.plan.buffers) {
    const bytes = roles.includes(b.role) ? byteLength(program.device, b, bound) : 0
    if (bytes > 0) yield { memory: memoryOf(b.name), bytes }
  }
}

/** Copies resident arrays into their arenas. */
export async function pack(
  { program: { device }, bound }: Contents,
  places: ReadonlyMap<string, BufferLocation>,
  resident: ReadonlyMap<string, DeviceBuffer>,
): Promise<void> {
  for (const [name, { buffer, memory, at }] of places) {
    const from = resident.get(name)
    const unit = elementBytes(device, buffer)
    const bytes = from && from !== memory ? elements(buffer, bound) * unit : 0
    if (from && bytes > 0)
      await device.upload(memory, new Uint8Array(await device.download(from, bytes)), at * unit)
  }
}

/** Fills outputs and temporaries with 0xff bytes (NaN), to detect unwritten elements. */
export async function poison(of: Contents): Promise<void> {
  for (const { memory, bytes } of within(of, ['out', 'local']))
    await of.program.device.upload(memory, new Uint8Array(bytes).fill(0xff))
}

/** Runs `work`, and then restores the contents of the buffers of these roles. */
export async function preserving<T>(
  of: Contents,
  roles: readonly Buffer['role'][],
  work: () => Promise<T>,
): Promise<T> {
  const { device } = of.program
  const contents: [DeviceBuffer, Uint8Array][] = []
  for (const { memory, bytes } of within(of, roles))
    contents.push([memory, new Uint8Array(await device.download(memory, bytes))])
  try {
    return await work()
  } finally {
    for (const [memory, bytes] of contents) await device.upload(memory, bytes)
  }
}
