/** Explanations of kernels: the model of a plan, next to device properties and measurements. `explanation.ts` defines the counts. */

import { instructionsOf } from '../../analysis/instructions/match.ts'
import { TARGETS, targetOf } from '../../backends/targets/index.ts'
import type { Buffer, Kernel3, Launch } from '../../ir/statements/loops.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { checkedPlan, planBuffer } from '../../plan/launch-plan.ts'
import type { Device, DeviceKind, LaunchCommand } from '../../runtime/device.ts'
import { type Measurement, measure } from '../../runtime/measure.ts'
import type { Bound } from '../bind/index.ts'
import type { Compilation } from '../compile/compile.ts'
import { checkFacts, elementBytes, hasWideIndices } from '../compile/device-limits.ts'
import { sharedBytesOf } from '../compile/launch-limits.ts'
import { elements, mostElements } from '../execution/buffer-layout.ts'
import type { Executable } from '../execution/execute.ts'
import { checkRanges } from '../execution/index-ranges.ts'
import { unorderedSums } from '../verify/unordered-sums.ts'
import { countLaunch, knownArrays } from './count.ts'
import type {
  ArrayTraffic,
  ClearExplanation,
  ExplainOptions,
  Explanation,
  LaunchExplanation,
  Resources,
  Times,
} from './explanation.ts'
import type { Multiprocessor } from './roofline.ts'
import { achievedOf, ceilingsOf, occupancyOf, roofOf, sumOf, workOf } from './roofline.ts'

export type * from './explanation.ts'

/** Explains a kernel with data, without a device. */
export function explainModel(compilation: Compilation, bound: Bound, kind: DeviceKind): Explanation {
  const plan = compilation.planFor(TARGETS[targetOf({ kind })].lowering)
  const checked = checkedPlan(plan)
  checkFacts(checked, bound.params)
  checkRanges(checked, bound.params, hasWideIndices({ kind }))
  const steps = stepsOf(compilation, plan, bound, kind, (b) => DTYPE_BYTES[b.dtype])
  return explanation(compilation, plan, bound, { kind, name: null }, steps, null)
}

/** Explains a kernel with its data on its device, with measured times. Throws SptError like `Executable.measure`. */
export function explain(
  compilation: Compilation,
  executable: Executable,
  options: ExplainOptions = {},
): Promise<Explanation> {
  const work = (): Promise<Explanation> => explained(compilation, executable, options.time ?? true)
  return options.time === false ? work() : executable.preserving(['out', 'inout'], work)
}

async function explained(
  compilation: Compilation,
  executable: Executable,
  timed: boolean,
): Promise<Explanation> {
  const { program } = executable
  const { device } = program
  const bound = await executable.boundFromDevice()
  const plan = compilation.planOn(device)
  const model = stepsOf(compilation, plan, bound, device.kind, (b) => elementBytes(device, b))
  const launches = executable.launches
  const entries = program.plan.texts.flatMap((t) => t.entries)
  const total = timed ? await timesOf(executable) : null
  const steps: Explanation['steps'][number][] = []
  let next = 0
  for (const step of model) {
    if (step.kind === 'clear') {
      steps.push(step)
      continue
    }
    const entry = entries[next++]!
    const command = launches.find((c) => c.entry === entry.name)
    const used = program.modules.get(entry.name)?.resources?.[entry.name]
    const resources: Resources | null = used
      ? {
          registers: used.registers ?? 0,
          shared: (used.shared ?? 0) + entry.sharedBytes,
          local: used.local ?? 0,
        }
      : null
    const chip = chipOf(device)
    const alone = model.length === 1
    const time = !total || !command ? null : alone ? total : await timesOfCommand(device, command, total)
    const ceilings = ceilingsOf(device.kind, device.name)
    steps.push({
      ...step,
      resources,
      occupancy:
        resources && chip && command ? occupancyOf(chip, resources, step.threads, step.blocks) : null,
      roof: ceilings ? roofOf(ceilings, step) : null,
      time,
      achieved: time && achievedOf(ceilings, step, time),
    })
  }
  return explanation(compilation, plan, bound, device, steps, total)
}

function explanation(
  compilation: Compilation,
  plan: Kernel3,
  bound: Bound,
  { kind: device, name: deviceName }: { readonly kind: DeviceKind; readonly name: string | null },
  steps: Explanation['steps'],
  time: Times | null,
): Explanation {
  const launches = steps.filter((s): s is LaunchExplanation => s.kind === 'launch')
  const cleared = steps.reduce((n, s) => n + (s.kind === 'clear' ? s.bytes : 0), 0)
  const total = sumOf(launches, cleared)
  const ceilings = deviceName === null ? undefined : ceilingsOf(device, deviceName)
  const sizes = compilation.kernel.params.filter((p) => !p.measured).map((p) => p.name)
  return {
    kernel: compilation.source.name,
    device,
    deviceName,
    unorderedSums: unorderedSums(compilation.loops, plan, device),
    sizes: Object.fromEntries(sizes.map((name) => [name, bound.params.get(name) ?? 0])),
    steps,
    launches,
    total,
    roof: ceilings ? roofOf(ceilings, total) : null,
    time,
    achieved: time && achievedOf(ceilings, total, time),
  }
}

type Unit = (b: Buffer) => number

function stepsOf(
  compilation: Compilation,
  plan: Kernel3,
  bound: Bound,
  device: DeviceKind,
  unit: Unit,
): (LaunchExplanation | ClearExplanation)[] {
  const instrs = instructionsOf(compilation.loops)
  const given = { params: bound.params, arrays: knownArrays(plan, bound.arrays) }
  const lengths = new Map(
    plan.buffers.map((b) => [b.name, elements(planBuffer(b), bound, mostElements({ kind: device }))]),
  )
  return plan.steps.flatMap((step) => {
    if (step.kind === 'rounds') return []
    if (step.kind === 'launch') {
      const counted = countLaunch(step, plan.buffers, given, instrs)
      const shared = sharedBytesOf({ kind: device }, step, unit)
      const alternative = step.when ? plan.branches!.schedules[step.when.alternative]!.text : null
      return { ...launchOf(step, plan.buffers, counted, lengths, shared, unit), alternative }
    }
    const buffer = plan.buffers.find((b) => b.name === step.buffer)!
    return { kind: 'clear', array: step.buffer, bytes: lengths.get(step.buffer)! * unit(buffer) }
  })
}

function launchOf(
  launch: Launch,
  buffers: readonly Buffer[],
  counted: ReturnType<typeof countLaunch>,
  lengths: ReadonlyMap<string, number>,
  shared: number,
  unit: Unit,
): Omit<LaunchExplanation, 'alternative'> {
  const arrays = buffers.flatMap((b): ArrayTraffic[] => {
    const moved = counted.arrays.get(b.name)
    return moved ? [{ array: b.name, elements: lengths.get(b.name)!, elementBytes: unit(b), ...moved }] : []
  })
  const bytes = (of: (a: ArrayTraffic) => number): number =>
    arrays.reduce((n, a) => n + a.elementBytes * of(a), 0)
  const work = workOf(
    {
      compulsory: bytes(
        (a) => Math.min(a.elements, a.loads + a.atomics) + Math.min(a.elements, a.stores + a.atomics),
      ),
      loaded: bytes((a) => a.loads + a.atomics),
      stored: bytes((a) => a.stores + a.atomics),
      sharedLoaded: counted.shared.loaded,
      sharedStored: counted.shared.stored,
    },
    counted.operations,
    counted.certainty,
  )
  return {
    kind: 'launch',
    name: launch.name,
    grid: counted.grid,
    block: launch.block,
    blocks: counted.grid.reduce((n, x) => n * x, 1),
    threads: launch.block.reduce((n, x) => n * x, 1),
    arrays,
    sharedBytes: shared,
    ...work,
    resources: null,
    occupancy: null,
    roof: null,
    time: null,
    achieved: null,
  }
}

/** Properties of a multiprocessor; undefined except on cuda. */
function chipOf(device: Device): Multiprocessor | undefined {
  return 'chip' in device ? (device as Device & { readonly chip: Multiprocessor }).chip : undefined
}

const MOST_SAMPLES = 50
const FEWEST_SAMPLES = 3
/** Time budget for all samples, in milliseconds. */
const PATIENCE = 500
/** If a run takes less than `SHORT` milliseconds, a sample is a batch of `BATCH` runs. */
const SHORT = 0.02
const BATCH = 20

async function timesOf(executable: Executable): Promise<Times> {
  // A warm-up run, which loads code and fills caches.
  await executable.run()
  const [first = 0] = await executable.time(1)
  return summary(await executable.measure(optionsFor(first)))
}

async function timesOfCommand(device: Device, command: LaunchCommand, total: Times): Promise<Times> {
  // Repetitions of one launch must not overlap, although they do not follow each other in a run.
  return summary(await measure(device, [{ ...command, follows: false }], optionsFor(total.median)))
}

function optionsFor(expected: number): { warmups: number; repeats: number; batch: number } {
  const repeats = Math.round(
    Math.min(MOST_SAMPLES, Math.max(FEWEST_SAMPLES, PATIENCE / Math.max(expected, 1e-3))),
  )
  return { warmups: Math.ceil(repeats / 5), repeats, batch: expected < SHORT ? BATCH : 1 }
}

function summary({ times, floor }: Measurement): Times {
  const sorted = times.toSorted((a, b) => a - b)
  return { median: sorted[Math.floor(sorted.length / 2)]!, min: sorted[0]!, samples: sorted.length, floor }
}
