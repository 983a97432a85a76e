/** Compilation of a kernel for a device, and keys of kernels that store their tensors identically. */
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { position, SourceText } from '../../ast/diagnostics/source-frame.ts'
import { type Span, sourceOf } from '../../ast/diagnostics/span.ts'
import type { TextOptions } from '../../backends/target.ts'
import { emit, type ModuleText, targetOf } from '../../backends/targets/index.ts'
import type { Kernel3, Launch } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import { packBuffers } from '../../lower/launches/buffer-packing.ts'
import { type LaunchPlan, launchPlan } from '../../plan/launch-plan.ts'
import type { Device } from '../../runtime/device.ts'
import { isWord } from '../../runtime/webgpu/widened-elements.ts'
import { coordStepsKey } from '../../schedule/coordinates/steps.ts'
import { unorderedSums } from '../verify/unordered-sums.ts'
import type { Compilation } from './compile.ts'
import { type DeviceProperties, hasWideIndices } from './device-limits.ts'
import { checkLimits, needsOf } from './launch-limits.ts'
import { type Program, programOf, type Sources } from './program.ts'

export const textOptions = (device: DeviceProperties): TextOptions => ({ f16: !isWord(device, 'f16') })

/** Throws `device/no-instruction` if a text uses instructions or memories that the device lacks. */
function checkCapabilities(device: DeviceProperties, { capabilities = [] }: ModuleText): void {
  const missing = capabilities.find((c) => !device.features.has(c.name))
  if (!missing) return
  failAs('device/no-instruction', {
    message: `${missing.by} needs ${missing.name}, which ${device.name} does not have`,
    ...(missing.span && { span: missing.span }),
    expected: 'a device with it, or another schedule',
  })
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

type PlanSource = Pick<Compilation, 'kernel' | 'loops' | 'planOn' | 'place'>

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
  const packed = packBuffers(compilation.planOn(device), device.limits.maxBuffersPerLaunch)
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
