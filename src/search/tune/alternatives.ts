/** Alternatives outside a space: the default schedule, the unscheduled kernel, and tensors stored dense. */
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import { Kernel } from '../../api/kernels/kernel.ts'
import { parseProgram } from '../../api/programs/program.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import { bindingOf } from '../../run/bind/binding-names.ts'
import type { Inputs } from '../../run/bind/index.ts'
import { allAxesOf, callerTensors, isStructured } from '../../run/bind/sources/caller-tensors.ts'
import type { Device } from '../../runtime/device.ts'
import { storedOf } from '../records/identity.ts'
import type { ScheduleCall } from '../types.ts'

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
    const { kernel: selected, selection: choice } = await kernel.choose(device, inputs)
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

/** The kernel with the default steps of `compile`; `null` if it is rejected. */
async function withDefaultSteps(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Kernel | null> {
  try {
    const { kernel: stepped, compiled } = await kernel.compileDefault(device)
    compiled.release()
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
export function denseAlternatives(
  kernel: Kernel,
  tensors: NonNullable<Inputs['tensors']>,
): readonly Alternative[] {
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

function formatOf(text: string): AnyFormat {
  const [format] = formats.has(text) ? [formats.get(text)!] : parseProgram(text, 'dense.spt').formats.values()
  formats.set(text, format!)
  return format!
}

// Kernels that run as they were measured.

/**
 * Adds an explicit step to kernels without loop steps. Otherwise `compile` would apply a default schedule, and measure
 * another kernel.
 */
export const decided = (kernel: Kernel): Kernel => (kernel.compilation.onLoops ? kernel : kernel.asWritten())
