/** Compilation of a plan for a device, and keys of kernels that store their tensors identically. */
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { position, SourceText } from '../../ast/diagnostics/source-frame.ts'
import { type Source, type Span, sourceOf } from '../../ast/diagnostics/span.ts'
import { allOrNone } from '../../ast/work.ts'
import type { DeviceKind, TextOptions } from '../../backends/target.ts'
import { emit, type ModuleText, TARGETS, targetOf } from '../../backends/targets/index.ts'
import type { Kernel3, Launch } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import { packBuffers } from '../../lower/launches/buffer-packing.ts'
import type { LowerOptions } from '../../lower/passes.ts'
import { type LaunchPlan, launchPlan } from '../../plan/launch-plan.ts'
import { checkDevice } from '../../plan/read.ts'
import type { Command, CompiledModule, Device, DeviceBuffer } from '../../runtime/device.ts'
import { isWord } from '../../runtime/webgpu/widened-elements.ts'
import { coordStepsKey } from '../../schedule/coordinates/steps.ts'
import type { Bound } from '../bind/index.ts'
import { unorderedSums } from '../verify/unordered-sums.ts'
import type { Compilation } from './compile.ts'
import type { DeviceProperties } from './device-limits.ts'
import { checkLimits, hasWideIndices, needsOf } from './device-limits.ts'

export function lanesOf(device: DeviceProperties): LowerOptions {
  const { lanes } = device.limits
  if (device.kind !== 'webgpu' || lanes === undefined) return TARGETS[targetOf(device)].lowering
  // WGSL's uniformity analysis is per block, not per lane.
  return { lanes, together: true }
}

export const textOptions = (device: DeviceProperties): TextOptions => ({ f16: !isWord(device, 'f16') })

/** Throws `device/no-instruction` if a text uses instructions or memories that the device lacks. */
function checkCapabilities(device: DeviceProperties, { capabilities = [] }: ModuleText): void {
  const missing = capabilities.find((c) => !device.features.has(c.name))
  if (!missing) return
  failAs('device/no-instruction', {
    message: `${missing.by} needs ${missing.name}, which ${device.name} does not have`,
    ...(missing.span ? { span: missing.span } : {}),
    expected: 'a device with it, or another schedule',
  })
}

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

/**
 * Compiles a kernel for a device. With `sources`, faults of its kernels name source lines. Throws SptError `device/compile`,
 * `device/no-instruction`, `emit/…`, `plan/…`.
 */
export async function compileOn(
  device: Device,
  compilation: PlanSource,
  sources: Sources = new Map(),
): Promise<Program> {
  const planOf = planner(device, compilation, sources)
  return programOf(device, planOf(false), sources, hasWideIndices(device) ? () => planOf(true) : undefined)
}

type PlanSource = Pick<Compilation, 'kernel' | 'loops' | 'planFor' | 'place'>

/** Returns the plan of a kernel for the properties of a device. Throws SptError `device/no-instruction`, `emit/…`, `plan/…`. */
export const planOn = (
  device: DeviceProperties,
  compilation: PlanSource,
  { sources = new Map(), wide = false }: { readonly sources?: Sources; readonly wide?: boolean } = {},
): LaunchPlan => planner(device, compilation, sources)(wide)

function planner(
  device: DeviceProperties,
  compilation: PlanSource,
  sources: Sources,
): (wide: boolean) => LaunchPlan {
  const packed = packBuffers(compilation.planFor(lanesOf(device)), device.limits.maxBuffersPerLaunch)
  return (wide) => {
    const texts = withPlaces(
      emit(packed.plan, targetOf(device), { ...textOptions(device), wide }),
      packed.plan,
      sources,
    )
    for (const t of texts) checkCapabilities(device, t)
    checkLimits(device, packed)
    const dtypes = new Set(packed.plan.buffers.map((b) => b.dtype))
    const sums = unorderedSums(compilation.loops, packed.plan, device.kind)
    return launchPlan({
      kernel: compilation.kernel,
      schedule: compilation.place.schedule,
      stage3: packed.plan,
      arenas: packed.arenas,
      device: device.kind,
      index: wide ? 64 : 32,
      needs: needsOf(device, packed, texts),
      words: [...dtypes].filter((t) => isWord(device, t)),
      texts,
      ...(sums.length > 0 && { unorderedSums: sums }),
    })
  }
}

/** Compiles a plan that was read from JSON. Throws SptError `device/compile`, `plan/other-device`, `plan/missing-feature`, `plan/limit`. */
export async function loadOn(device: Device, plan: LaunchPlan): Promise<Program> {
  checkDevice(plan, device)
  return programOf(device, plan)
}

/** Compiles the texts of a plan. `wide` returns the same plan with 64-bit indices. */
async function programOf(
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

/** Adds the source line of the first statement of each launch, if known: `program.spt:15`. */
function withPlaces(texts: readonly ModuleText[], plan: Kernel3, sources: Sources): ModuleText[] {
  const launches = plan.steps.filter((s) => s.kind === 'launch')
  let next = 0
  return texts.map((text) => ({
    ...text,
    entries: text.entries.map((entry) => {
      const launch = launches[next++]
      const span = launch && firstSpan(launch)
      const source = span && sourceOf(span, sources)
      if (!source) return entry
      return { ...entry, place: `${source.name}:${position(new SourceText(source.text), span.start).line}` }
    }),
  }))
}

function firstSpan(launch: Launch): Span | undefined {
  let found: Span | undefined
  walkStmts(launch.body, (s) => {
    // Loops may have become hardware indices; stores and reductions exist on every device.
    if (s.kind === 'store' || s.kind === 'reduce') found ??= s.span
  })
  return found
}

/** Key of the steps that determine the stored arrays: all steps on coordinates except loop reordering. Empty if there are none. */
export function formatKey({ coordSteps }: Pick<Compilation, 'coordSteps'>): string {
  const kept = coordSteps.filter((s) => s.kind !== 'reorder')
  return kept.length === 0 ? '' : coordStepsKey(kept, false)
}

/** A kernel with default schedules for many threads and for one thread. */
export interface Defaulted<K> {
  parallel(): K
  sequential(): K
}

/** Returns the default schedule for a kind of device: sequential on cpu, parallel on GPUs. */
export const runOn = <K extends Defaulted<K>>(made: K, kind: DeviceKind): K =>
  kind === 'cpu' ? made.sequential() : made.parallel()
