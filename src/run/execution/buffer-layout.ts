/** Addresses and sizes of a program's buffers in device memory. */
import { countText } from '../../ast/diagnostics/count-text.ts'
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { Device, DeviceBuffer } from '../../runtime/device.ts'
import { checkAlloc } from '../../runtime/device-checks.ts'
import type { Bound } from '../bind/index.ts'
import type { Program } from '../compile/compiled-program.ts'
import { checkFacts, elementBytes } from '../compile/device-limits.ts'
import { checkRanges } from './index-ranges.ts'

const MAX_ELEMENTS = 2 ** 31 - 1

/** Location of a kernel's buffer in device memory; `at`: index of its first element. */
export interface BufferLocation {
  readonly buffer: Buffer
  readonly memory: DeviceBuffer
  readonly at: number
}

/** Name of a buffer for messages; an arena is named after its members. */
export const labelOf = (program: Program, b: Buffer): string =>
  program.arenas
    .find((a) => a.buffer.name === b.name)
    ?.members.map((m) => m.buffer.name)
    .join(' + ') ?? b.name

export function placesOf(
  program: Program,
  bound: Bound,
  memory: ReadonlyMap<string, DeviceBuffer>,
): ReadonlyMap<string, BufferLocation> {
  const arenas = new Set(program.arenas.map((a) => a.buffer.name))
  const whole = program.plan.buffers
    .filter((b) => !arenas.has(b.name))
    .map((buffer): BufferLocation => ({ buffer, memory: memory.get(buffer.name)!, at: 0 }))
  const packed = program.arenas.flatMap((a) =>
    a.members.map(
      ({ buffer, offset }): BufferLocation => ({
        buffer,
        memory: memory.get(a.buffer.name)!,
        at: evaluate(offset, bound.params),
      }),
    ),
  )
  return new Map([...whole, ...packed].map((p) => [p.buffer.name, p]))
}

/** Bound data with known sizes. */
type Sized = Pick<Bound, 'params'>

export function elements(b: Buffer, bound: Sized): number {
  const n = b.shape.reduce((size, e) => size * Math.max(0, evaluate(e, bound.params)), 1)
  if (n > MAX_ELEMENTS)
    fail({
      code: 'plan/too-large',
      message: `${b.name} has ${countText(n)} elements`,
      expected: `at most ${MAX_ELEMENTS}: addresses are 32-bit`,
      hint: 'use smaller sizes, or partition the tensor',
    })
  return n
}

export const byteLength = (device: Device, b: Buffer, bound: Sized): number =>
  elements(b, bound) * elementBytes(device, b)

/**
 * Checks the buffers whose lengths these sizes determine against the device's limits, before data is created. Returns their total in
 * bytes. Throws SptError `plan/too-large`, `plan/overflow`, `device/buffer-too-large`.
 */
export function checkFits({ device, plan }: Program, params: ReadonlyMap<string, number>): number {
  checkFacts(plan, params)
  let total = 0
  for (const b of plan.buffers) {
    if (b.shape.some((e) => [...freeVars(e)].some((v) => !params.has(v)))) continue
    const bytes = byteLength(device, b, { params })
    checkAlloc(bytes, b.name, device.limits)
    total += bytes
  }
  checkRanges(plan, params)
  return total
}
