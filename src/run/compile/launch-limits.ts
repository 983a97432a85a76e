/** Checks of device limits at compile time, with the names of kernels and buffers in messages. */

import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import {
  allocateShared,
  rejectSharedOverflow,
  sharedArrays,
} from '../../backends/memory/shared-memory-liveness.ts'
import { type ModuleText, TARGETS, targetOf } from '../../backends/targets/index.ts'
import type { Buffer, Kernel3, Launch } from '../../ir/statements/loops.ts'
import { buffersOf, type PackedPlan } from '../../lower/launches/buffer-packing.ts'
import type { PlanNeeds } from '../../plan/schema.ts'
import { type DeviceProperties, elementBytes } from './device-limits.ts'

/** Returns the properties of a device that the launches and texts of a plan require. */
export function needsOf(
  device: DeviceProperties,
  { plan }: PackedPlan,
  texts: readonly ModuleText[],
): PlanNeeds {
  const launches = plan.steps.filter((s) => s.kind === 'launch')
  const most = (of: (l: Launch) => number): number => Math.max(0, ...launches.map(of))
  const enabled = texts.flatMap((t) => [...t.text.matchAll(/^enable (\w+);/gm)].map((m) => m[1]!))
  const features = new Set([
    ...texts.flatMap((t) => (t.capabilities ?? []).map((c) => c.name)),
    ...enabled.map((name) => (name === 'f16' ? 'shader-f16' : name)),
  ])
  return {
    features: [...features],
    buffersPerLaunch: most((l) => buffersOf(plan, l).length),
    threadsPerBlock: most((l) => l.block[0] * l.block[1] * l.block[2]),
    block: [most((l) => l.block[0]), most((l) => l.block[1]), most((l) => l.block[2])],
    sharedBytes: most((l) => sharedBytesOf(device, l, (b) => elementBytes(device, b))),
    ...(features.has('subgroups') && device.limits.lanes !== undefined && { lanes: device.limits.lanes }),
  }
}

/** Throws SptError `plan/block-too-large`, `plan/shared-too-large` or `plan/too-many-buffers` if a launch exceeds a limit. */
export function checkLimits(device: DeviceProperties, packed: PackedPlan): void {
  for (const step of packed.plan.steps) {
    if (step.kind !== 'launch') continue
    checkBlock(device, step)
    checkShared(device, step)
    checkBuffers(device, packed.plan, step)
  }
}

function checkBlock(device: DeviceProperties, { name, block }: Launch): void {
  const threads = block[0] * block[1] * block[2]
  const { maxThreadsPerBlock, maxBlockDim } = device.limits
  const along = block.findIndex((n, k) => n > maxBlockDim[k]!)
  if (threads <= maxThreadsPerBlock && along < 0) return
  failAs('plan/block-too-large', {
    message: `${name} has blocks of ${block.join(' × ')} threads; ${device.name} allows ${maxThreadsPerBlock} (${maxBlockDim.join(', ')} in each dimension)`,
    expected: [
      ...(along < 0 ? [] : [`at most ${maxBlockDim[along]} threads in ${'xyz'[along]}`]),
      ...(threads > maxThreadsPerBlock ? [`at most ${maxThreadsPerBlock} threads in total`] : []),
    ].join(', '),
    hint:
      threads > maxThreadsPerBlock
        ? 'bind shorter loops to thread axes: split by a smaller factor'
        : `bind a shorter loop to thread.${'xyz'[along]}, or this loop to another axis`,
  })
}

type Unit = (b: Buffer) => number

/** Bytes of shared memory that the generated code declares per block. `unit`: bytes per element. */
export const sharedBytesOf = (device: Pick<DeviceProperties, 'kind'>, launch: Launch, unit: Unit): number =>
  TARGETS[targetOf(device)].reusesShared
    ? allocateShared(launch).bytes
    : sharedArrays(launch, unit).reduce((n, b) => n + b.bytes, 0)

function checkShared(device: DeviceProperties, launch: Launch): void {
  const unit: Unit = (b) => elementBytes(device, b)
  rejectSharedOverflow(launch.name, sharedBytesOf(device, launch, unit), sharedArrays(launch, unit), {
    limit: device.limits.maxSharedBytes,
    holder: `${device.name} has`,
  })
}

function checkBuffers(device: DeviceProperties, plan: Kernel3, launch: Launch): void {
  const used = buffersOf(plan, launch)
  const limit = device.limits.maxBuffersPerLaunch
  const nests = [...new Set(launch.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))]
  const apart = fissionOf(launch)
  if (used.length > limit)
    failAs('plan/too-many-buffers', {
      message: `${nests.length > 0 ? `iteration ${nests.join(' and ')}` : launch.name} uses ${used.length} buffers (${used.map((b) => b.name).join(', ')}); ${device.name} allows ${limit} in one launch`,
      expected: `at most ${limit}, arrays of one type that are only read counting as one, and statements that depend on each other`,
      hint: `${apart ? `${apart}, ` : ''}give a statement a separate iteration, for example a statement that reads the output of another, or run on cpu or cuda`,
    })
}

/** A `fission` step that splits a launch whose loop contains several iterations, as text; undefined if none applies. */
function fissionOf({ body }: Launch): string | undefined {
  const [loop] = body.filter((s) => s.kind === 'for')
  if (!loop || body.length > 1) return undefined
  const inside = loop.body.flatMap((s) => (s.kind === 'for' && s.nest !== loop.nest ? [s.nest] : []))
  const others = new Set(inside)
  return others.size > 1 ? `fission ${loop.nest}.${loop.name} after ${inside[0]}` : undefined
}
