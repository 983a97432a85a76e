/** Properties of devices on which plans depend, and checks before a run. */

import { failAs, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { type DeviceKind, LANGUAGES, targetOf } from '../../backends/target.ts'
import { factText } from '../../ir/print/fact-text.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { brokenFact } from '../../plan/interpret.ts'
import type { CheckedPlan } from '../../plan/launch-plan.ts'
import type { Device, DeviceLimits } from '../../runtime/device.ts'
import { storedBytes } from '../../runtime/webgpu/widened-elements.ts'

/** Bytes per element of `b` in device memory. */
export const elementBytes = (device: DeviceProperties, b: Pick<Buffer, 'dtype'>): number =>
  storedBytes(device, b.dtype)

/** True if code for a device of this kind can have 64-bit indices. */
export const hasWideIndices = (device: Pick<DeviceProperties, 'kind'>): boolean =>
  LANGUAGES[targetOf(device)].wideIndices

/** Throws SptError `run/requirement` if the sizes violate a requirement of the schedule. */
export function checkFacts({ kernel, facts }: CheckedPlan, sizes: ReadonlyMap<string, number>): void {
  const broken = brokenFact(facts, sizes)
  if (!broken) return
  failAs('run/requirement', {
    message: `the schedule of ${kernel} requires ${factText(broken)}, and ${broken.size} is ${sizes.get(broken.size)}`,
    ...(broken.span && { span: broken.span }),
    expected: factText(broken),
    hint: 'take a schedule without this requirement, or other sizes',
  })
}

/** Returns true for errors that depend on the device: its limits, its types, or synchronisation of its threads. */
export const isRefusedByDevice = (why: unknown): why is SptError =>
  why instanceof SptError && ['plan/', 'schedule/', 'emit/'].some((room) => why.code.startsWith(room))

// Descriptions of devices, for plans that are written without a device.

/** The properties of a device that plans depend on. */
export type DeviceProperties = Pick<Device, 'kind' | 'name' | 'limits' | 'features' | 'storage'>

const UNLIMITED: DeviceLimits = {
  maxBufferBytes: Infinity,
  maxBindingBytes: Infinity,
  maxBuffersPerLaunch: Infinity,
  maxThreadsPerBlock: Infinity,
  maxBlockDim: [Infinity, Infinity, Infinity],
  maxGridDim: [Infinity, Infinity, Infinity],
  maxSharedBytes: Infinity,
}

/** Limits that every WebGPU device has (W3C, WebGPU, section 3.6.2). */
const WEBGPU: DeviceLimits = {
  maxBufferBytes: 2 ** 28,
  maxBindingBytes: 2 ** 27,
  maxBuffersPerLaunch: 8,
  maxThreadsPerBlock: 256,
  maxBlockDim: [256, 256, 64],
  maxGridDim: [65_535, 65_535, 65_535],
  maxSharedBytes: 16_384,
}

/**
 * Returns the description of a device with the least limits of a kind and the given features. `cuda`: instructions of every compute
 * capability are accepted, because loading checks the needs of a plan.
 */
export const describedDevice = (kind: DeviceKind, features: ReadonlySet<string>): DeviceProperties => ({
  kind,
  name: `any ${kind} device`,
  limits: kind === 'webgpu' ? WEBGPU : UNLIMITED,
  features: kind === 'cuda' ? anything : features,
  storage: kind === 'webgpu' ? 'words' : 'native',
})

const anything: ReadonlySet<string> = Object.assign(new Set<string>(), { has: () => true })
