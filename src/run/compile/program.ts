/** The texts of a plan as compiled modules, which run on any data of the plan's formats. */
import type { Source } from '../../ast/diagnostics/span.ts'
import { allOrNone } from '../../ast/work.ts'
import type { DeviceKind } from '../../backends/target.ts'
import type { LaunchPlan } from '../../plan/launch-plan.ts'
import { checkDevice } from '../../plan/read.ts'
import type { Command, CompiledModule, Device, DeviceBuffer } from '../../runtime/device.ts'
import type { Bound } from '../bind/index.ts'

/** Commands that replace those of the plan. */
export interface Instead {
  readonly commands: readonly Command[]
  free(): void
}

/** A plan compiled for a device. It runs on any data of its formats. */
export interface Program {
  readonly device: Device
  /** The plan for this device; small arrays may be packed into arenas. */
  readonly plan: LaunchPlan
  /** Sources into which the plan's spans point. */
  readonly sources: Sources
  /** Compiled modules by entry name. */
  readonly modules: ReadonlyMap<string, CompiledModule>
  /** False after `release` has freed the compiled modules. */
  readonly live: boolean
  /** Returns commands to run instead of the plan's steps, given the device memory; undefined for ordinary plans. */
  readonly instead?: ((bound: Bound, memory: ReadonlyMap<string, DeviceBuffer>) => Instead) | undefined
  /** Returns the program with 64-bit indices, compiled on first use; undefined if there is none. Throws SptError `device/compile`. */
  readonly wide?: (() => Promise<Program>) | undefined
  /** Frees the compiled modules of both widths. */
  release(): void
}

/** Compiles a plan that was read from JSON. Throws SptError `device/compile`, `plan/other-device`, `plan/missing-feature`, `plan/limit`. */
export async function loadOn(device: Device, plan: LaunchPlan): Promise<Program> {
  checkDevice(plan, device)
  return programOf(device, plan)
}

/** Compiles the texts of a plan. `wide` returns the same plan with 64-bit indices. Throws SptError `device/compile`. */
export async function programOf(
  device: Device,
  plan: LaunchPlan,
  sources: Sources = new Map(),
  wide?: () => LaunchPlan,
): Promise<Program> {
  const allModules: CompiledModule[] = []
  let live = true
  let wideProgram: Promise<Program> | undefined
  const release = (): void => {
    live = false
    for (const m of allModules.splice(0)) m.release()
  }
  const compile = async (own: LaunchPlan): Promise<Program> => {
    const compiled = await allOrNone(own.texts.map((t) => device.compile(t)))
    allModules.push(...compiled)
    if (!live) release()
    return {
      device,
      plan: own,
      sources,
      modules: new Map(compiled.flatMap((m) => m.text.entries.map((e) => [e.name, m] as const))),
      get live() {
        return live
      },
      wide: wide && (() => (wideProgram ??= compile(wide()))),
      release,
    }
  }
  return compile(plan)
}

/** Sources of the program by name, into which spans point. */
export type Sources = ReadonlyMap<string, Source>

/** A kernel with default schedules for many threads and for one thread. */
export interface Defaulted<K> {
  parallel(): K
  sequential(): K
}

/** Returns the default schedule for a kind of device: sequential on cpu, parallel on GPUs. */
export const runOn = <K extends Defaulted<K>>(made: K, kind: DeviceKind): K =>
  kind === 'cpu' ? made.sequential() : made.parallel()
