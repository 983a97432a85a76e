/** A plan compiled for a device. */
import { fail } from '../ast/diagnostic.ts'
import { emit, type ModuleText } from '../backends/emit.ts'
import type { TextOptions } from '../backends/target.ts'
import { TARGETS, targetOf } from '../backends/targets/index.ts'
import type { Plan } from '../ir/loops.ts'
import { type Arena, packBuffers } from '../lower/buffer-packing.ts'
import type { LowerOptions } from '../lower/passes.ts'
import type { Command, CompiledModule, Device, DeviceBuffer } from '../runtime/device.ts'
import { isWord } from '../runtime/widened-elements.ts'
import type { Bound } from './bind/index.ts'
import { checkLimits } from './device-limits.ts'
import { type Sources, withPlaces } from './launch-spans.ts'

/** What plans for the device may use. */
export function lanesOf(device: Device): LowerOptions {
  const { lanes } = device.limits
  if (device.kind !== 'webgpu' || lanes === undefined) return TARGETS[targetOf(device)].lowering
  // Its uniformity analysis sees blocks, not lanes.
  return { lanes, together: true }
}

/** What texts for the device may use. */
export const textOptions = (device: Device): TextOptions => ({ f16: !isWord(device, 'f16') })

/** Declared instructions and memories are those that the device has. */
function checkCapabilities(device: Device, { capabilities = [] }: ModuleText): void {
  const missing = capabilities.find((c) => !device.features.has(c.name))
  if (!missing) return
  fail({
    code: 'device/no-instruction',
    message: `${missing.by} needs ${missing.name}, which ${device.name} does not have`,
    ...(missing.span ? { span: missing.span } : {}),
    expected: 'a device with it, or another schedule',
  })
}

/** Commands that are not the plan's own. */
export interface Instead {
  readonly commands: readonly Command[]
  free(): void
}

/** A plan compiled for a device: serves any data of its formats. */
export interface Program {
  readonly device: Device
  /** As the device runs it: arrays may have been packed. */
  readonly plan: Plan
  readonly arenas: readonly Arena[]
  readonly texts: readonly ModuleText[]
  /** What spans of the plan point into. */
  readonly sources: Sources
  /** By entry name. */
  readonly modules: ReadonlyMap<string, CompiledModule>
  /** Whether its modules are still there. */
  readonly live: boolean
  /** What is run in place of the plan's steps, once the arrays are in `memory`. */
  readonly instead?: ((bound: Bound, memory: ReadonlyMap<string, DeviceBuffer>) => Instead) | undefined
  release(): void
}

/**
 * Compiles the texts of a plan; with `sources`, faults of its kernels name their lines.
 * @throws SptError `device/compile`, `emit/…`, `plan/…`
 */
export async function compileOn(device: Device, whole: Plan, sources: Sources = new Map()): Promise<Program> {
  const packed = packBuffers(whole, device.limits.maxBuffersPerLaunch)
  const { plan, arenas } = packed
  const texts = withPlaces(emit(plan, targetOf(device), textOptions(device)), plan, sources)
  for (const t of texts) checkCapabilities(device, t)
  checkLimits(device, packed)
  const compiled = await Promise.all(texts.map((t) => device.compile(t)))
  const modules = new Map(compiled.flatMap((m) => m.text.entries.map((e) => [e.name, m] as const)))
  let live = true
  return {
    device,
    plan,
    arenas,
    texts,
    sources,
    modules,
    get live() {
      return live
    },
    release() {
      live = false
      for (const m of compiled) m.release()
    },
  }
}
