/** Alternatives outside a space: the default schedule, the unscheduled kernel, and tensors stored dense. */

import { buildDefault } from '../../api/built/build.ts'
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import { Kernel } from '../../api/kernels/kernel.ts'
import { parseProgram } from '../../api/programs/program.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { AbortSignalLike } from '../../ast/work.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { allAxesOf, callerTensors, isStructured } from '../../run/bind/bind-plan.ts'
import { bindingOf } from '../../run/bind/binding-names.ts'
import type { Inputs } from '../../run/bind/index.ts'
import type { Device } from '../../runtime/device.ts'
import type { Evaluator } from '../evaluate/evaluator.ts'
import { type AbsentLibrary, type LibraryRoutine, libraryRoutines } from '../evaluate/library-routines.ts'
import { fastestOf } from '../loop/tally.ts'
import { storedOf } from '../records/identity.ts'
import type { Records } from '../records/index.ts'
import type { Outcome, ScheduleCall } from '../types.ts'
import { measureContender } from './finals/finals.ts'

// The default schedule of a kernel, which tuning is compared with.

interface Standard {
  /** The schedule's name and arguments as source; `null` for the default steps. */
  readonly schedule: string | null
  /** The same as data. */
  readonly call: ScheduleCall | null
  readonly kernel: Kernel
}

/**
 * The kernel's own choice if it has one, otherwise the schedule named like the device if it is legal, otherwise none: as `spt
 * run` does.
 * @throws SptError as `Kernel.choose`
 */
export async function standardOf(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Standard> {
  if (kernel.dispatch !== null) {
    const { kernel: selected, selection: choice } = await kernel.choose(device, ...flatInputs(inputs))
    if (choice.schedule === null) return { kernel: selected, schedule: null, call: null }
    return { kernel: selected, schedule: choice.text, call: { name: choice.schedule, args: choice.args } }
  }
  const name = device.kind === 'cpu' ? 'cpu' : 'gpu'
  const scheduled = kernel.schedules.includes(name) ? resultOrError(() => kernel.schedule(name)) : null
  const kernelWithDefaults =
    scheduled instanceof Kernel ? await withDefaultSteps(scheduled, device, inputs) : null
  if (kernelWithDefaults)
    return { kernel: kernelWithDefaults, schedule: name, call: { name: name, args: [] } }
  return { kernel: (await withDefaultSteps(kernel, device, inputs)) ?? kernel, schedule: null, call: null }
}

/** The kernel with the default steps of `build`; `null` if it is rejected. */
async function withDefaultSteps(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Kernel | null> {
  try {
    const { kernel: stepped, built } = await buildDefault(kernel, device)
    built.release()
    if (device.kind === 'cpu') return stepped
    const params = Object.entries(inputs.params ?? {}).map(([name, x]) => [name, Number(x)] as const)
    return kernel.autoSchedule(device, Object.fromEntries(params), inputs.tensors ?? {})
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return null
  }
}

interface Alternative {
  readonly name: string
  /** Name and arguments of the default schedule. */
  readonly schedule?: string | null | undefined
  /** Declaration of a format made for this kernel alone. */
  readonly declaration?: string | undefined
  /** Ratio of traversed to stored elements, if greater than 1. */
  readonly expansion?: number | undefined
  /** @throws SptError if a step is rejected */
  readonly kernel: () => Kernel
}

/** Maximum number of elements of a tensor that is stored dense. */
const MAX_DENSE = 2 ** 26

/** Alternatives, beginning with the default schedule; if it rejects the data, its diagnostic is its outcome. */
export async function alternatives(
  kernel: Kernel,
  device: Device,
  { tensors = {} }: Inputs,
  inputs: RunInputs,
): Promise<readonly Alternative[]> {
  return [
    await standardAlternative(kernel, device, { ...inputs, tensors }),
    { name: 'unscheduled', kernel: () => kernel },
    ...denseAlternatives(kernel, tensors),
  ]
}

async function standardAlternative(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Alternative> {
  const name = 'default'
  try {
    const standard = await standardOf(kernel, device, inputs)
    return { name, schedule: standard.schedule, kernel: () => standard.kernel }
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    const rethrow = (): never => {
      throw e
    }
    return { name, schedule: kernel.dispatch, kernel: rethrow }
  }
}

/** Each sparse input stored dense, unless it is too large. */
function denseAlternatives(kernel: Kernel, tensors: NonNullable<Inputs['tensors']>): readonly Alternative[] {
  const { source } = kernel
  const axes = allAxesOf(source)
  return callerTensors(source).flatMap((t): Alternative[] => {
    const { name } = t
    const tensor = tensors[name]
    const shape = tensor?.shape
    const isInput = t.first.role === 'in' && t.axes.every((a) => isStructured(axes, a) || t.axes.length > 1)
    if (!isInput || !shape || !t.axes.some((a) => isStructured(axes, a))) return []
    const elements = shape.reduce((n, x) => n * x, 1)
    if (elements > MAX_DENSE) return []
    const expansion = elements / Math.max(1, storedOf(tensor!) ?? elements)
    const order = bindingOf(source, name).dimensions.length
    const text = denseText(order, unusedFormatName(kernel))
    return [
      { name: `${name} dense`, declaration: text, expansion, kernel: () => kernel.as(name, formatOf(text)) },
    ]
  })
}

/** A format name unused in the program, so that the winner's steps can be parsed with it. */
function unusedFormatName({ formats }: Kernel): string {
  let name = 'dense'
  for (let n = 2; formats.has(name); n++) name = `dense_${n}`
  return name
}

/** Source of a format that stores every coordinate in row-major order. */
function denseText(order: number, name: string): string {
  const dimensions = Array.from({ length: order }, (_, d) => `i${d}`)
  const axes = dimensions.map((a) => `${a}o`)
  return `format ${name} over (${dimensions.join(', ')}) {
${dimensions.map((a, d) => `  axis ${axes[d]} = dense_fixed(${a})\n`).join('')}  map (${dimensions.join(', ')}) -> (${dimensions.join(', ')})
  inverse (${axes.join(', ')}) -> (${axes.join(', ')})
}
`
}

const formats = new Map<string, AnyFormat>()

const formatOf = (text: string): AnyFormat =>
  getOrAdd(formats, text, () => [...parseProgram(text, 'dense.spt').formats.values()][0]!)

// Kernels that run as they were measured.

/** Adds an explicit step to kernels without loop steps, to which `build` would apply a default schedule. */
export const withExplicitSteps = (kernel: Kernel): Kernel =>
  kernel.compilation.onLoops ? kernel : kernel.asWritten()

// Evaluates library routines before a search, so that the fastest are part of the final comparison.

export interface LibraryTrial {
  /** The routine's name, and the tensor that is stored dense for it. */
  readonly name: string
  readonly routine: LibraryRoutine
  readonly outcome: Outcome
}

export interface LibraryTrials {
  readonly trials: readonly LibraryTrial[]
  /** Libraries that could not be opened. */
  readonly absent: readonly AbsentLibrary[]
}

/** Decision name of points that stand for routines; distinct from all other decision names. */
const ROUTINE_DECISION = 'library routine'

/** Evaluates all routines that compute the kernel, with sparse tensors stored as declared, or dense. */
export async function libraryTrials(
  evaluator: Evaluator,
  kernel: Kernel,
  signal: AbortSignalLike | undefined,
): Promise<LibraryTrials> {
  const { device, data } = evaluator.bench
  const variants = [
    { name: '', kernel: () => kernel },
    ...(device.library ? denseAlternatives(kernel, data.inputs.tensors ?? {}) : []),
  ]
  const matches = variants.map(({ name, kernel: makeKernel }) => ({
    name,
    ...libraryRoutines(makeKernel(), device),
  }))
  const trials: LibraryTrial[] = []
  for (const { name, routines } of matches)
    for (const routine of routines) {
      if (signal?.aborted) break
      const outcome = await measureContender(evaluator, { kernel: routine.kernel, routine }, signal).catch(
        (e) => {
          if (signal?.aborted) return null
          throw e
        },
      )
      if (!outcome) break
      trials.push({ name: name === '' ? routine.name : `${routine.name}, ${name}`, routine, outcome })
    }
  const absent = new Map(matches.flatMap((f) => f.absent.map((a) => [a.library, a])))
  return { trials, absent: [...absent.values()] }
}

/** The fastest routine of each library, fastest first. */
export function fastestRoutines({ trials }: LibraryTrials): readonly LibraryTrial[] {
  const names = [...new Set(trials.map((t) => t.routine.library))]
  return fastestOf(names.flatMap((n) => fastestOf(trials.filter((t) => t.routine.library === n)).slice(0, 1)))
}

/** Records the trials under the names and versions of the routines. */
export function recordTrials({ trials }: LibraryTrials, records: Records, study: string): void {
  records.add(
    ...trials.map(({ name, outcome }) => ({
      study,
      point: { [ROUTINE_DECISION]: name },
      outcome,
      share: 0.25,
    })),
  )
}
