/** Addresses and sizes of a program's buffers in device memory. */

import { HIGHEST } from '../../analysis/integers/interval.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { countText } from '../../ast/print/message-text.ts'
import { WIDEST } from '../../ir/expressions/size-expressions.ts'
import { addBases, lengthOf } from '../../plan/interpret.ts'
import type { CheckedPlan } from '../../plan/launch-plan.ts'
import type { PlanBuffer } from '../../plan/schema.ts'
import type { Device, DeviceBuffer } from '../../runtime/device.ts'
import { checkAlloc } from '../../runtime/device-checks.ts'
import type { Bound } from '../bind/index.ts'
import { checkFacts, elementBytes, hasWideIndices } from '../compile/device-limits.ts'
import type { Program } from '../compile/program.ts'
import { checkRanges } from './index-ranges.ts'

/** Location of a kernel's buffer in device memory; `at`: index of its first element. */
export interface BufferLocation {
  readonly buffer: PlanBuffer
  readonly memory: DeviceBuffer
  readonly at: number
}

/** Name of a buffer for messages; an arena is named after its members. */
export const labelOf = ({ plan: { packed } }: Program, { name }: PlanBuffer): string =>
  packed.flatMap((p) => (p.in === name ? [p.name] : [])).join(' + ') || name

export function placesOf(
  program: Program,
  bound: Bound,
  memory: ReadonlyMap<string, DeviceBuffer>,
): ReadonlyMap<string, BufferLocation> {
  const { buffers, packed } = program.plan
  const sizes = new Map(bound.params)
  addBases(packed, sizes)
  const places = new Map<string, BufferLocation>()
  for (const b of buffers)
    if (packed.every((p) => p.in !== b.name))
      places.set(b.name, { buffer: b, memory: memory.get(b.name)!, at: 0 })
  for (const p of packed) places.set(p.name, { buffer: p, memory: memory.get(p.in)!, at: sizes.get(p.base)! })
  return places
}

/** Bound data with known sizes. */
type Sized = Pick<Bound, 'params'>

/** Returns the number of elements. Throws SptError `plan/too-large` if more than `most`, by default as many as 32 bits address. */
export function elements(b: PlanBuffer, bound: Sized, most: number = HIGHEST): number {
  const n = lengthOf(b, bound.params)!
  if (n > most)
    failWith('plan/too-large', `${b.name} has ${countText(n)} elements`, {
      expected: `at most ${most}: addresses are ${most > HIGHEST ? 64 : 32}-bit`,
      hint: 'use smaller sizes, or partition the tensor',
    })
  return n
}

export const byteLength = (device: Device, b: PlanBuffer, bound: Sized): number =>
  elements(b, bound, mostElements(device)) * elementBytes(device, b)

/** The number of elements that code for a device can address. */
export const mostElements = (device: Pick<Device, 'kind'>): number =>
  hasWideIndices(device) ? WIDEST : HIGHEST

/**
 * Checks the buffers whose lengths these sizes determine against the device's limits, before data is created. Returns their total in
 * bytes. Throws SptError `plan/too-large`, `plan/overflow`, `device/buffer-too-large`.
 */
export function checkFits(
  { device, plan }: { readonly device: Device; readonly plan: CheckedPlan },
  params: ReadonlyMap<string, number>,
): number {
  checkFacts(plan, params)
  let total = 0
  for (const b of plan.buffers) {
    if (lengthOf(b, params) === undefined) continue
    const bytes = byteLength(device, b, { params })
    checkAlloc(bytes, b.name, device.limits)
    total += bytes
  }
  checkRanges(plan, params, hasWideIndices(device))
  return total
}

/** Contents of an executable's buffers: poisoned, to detect unwritten elements, saved and restored. */
export interface Contents {
  readonly program: Program
  readonly bound: Bound
  memoryOf(name: string): DeviceBuffer
}

/** Nonempty buffers of these roles. Arenas are excluded, because they are read-only. */
function* within(of: Contents, roles: readonly PlanBuffer['role'][]) {
  const { program, bound } = of
  for (const b of program.plan.buffers) {
    const bytes = roles.includes(b.role) ? byteLength(program.device, b, bound) : 0
    if (bytes > 0) yield { memory: of.memoryOf(b.name), bytes }
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
    const bytes = from && from !== memory ? byteLength(device, buffer, bound) : 0
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
  roles: readonly PlanBuffer['role'][],
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
