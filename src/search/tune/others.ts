/** Alternatives outside a space: the default schedule, the unscheduled kernel, and tensors stored dense. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { Kernel } from '../../api/kernel.ts'
import { parseProgram } from '../../api/program.ts'
import { SptError } from '../../ast/diagnostic.ts'
import type { AnyFormat } from '../../ir/format.ts'
import { bindingOf } from '../../run/bind/binding-names.ts'
import { allAxesOf, callerTensors, isStructured } from '../../run/bind/caller-tensors.ts'
import type { Inputs } from '../../run/bind/index.ts'
import type { Device } from '../../runtime/device.ts'
import { storedOf } from '../records/identity.ts'
import { standardOf } from './standard.ts'

export interface Other {
  readonly name: string
  /** Of the standard choice: its schedule as it is called. */
  readonly schedule?: string | null | undefined
  /** Declaration of a format made for this kernel alone. */
  readonly declaration?: string | undefined
  /** Elements that it goes through for each that is stored, where they are more. */
  readonly filled?: number | undefined
  /** @throws SptError where a step refuses */
  readonly kernel: () => Kernel
}

/** Elements of a tensor that is stored dense: beyond, it is not tried. */
const MOST_DENSE = 2 ** 26

/** The default schedule comes first; if it rejects the data, its diagnostic is its outcome. */
export async function others(
  kernel: Kernel,
  device: Device,
  { tensors = {} }: Inputs,
  inputs: RunInputs,
): Promise<readonly Other[]> {
  return [
    await standardIn(kernel, device, { ...inputs, tensors }),
    { name: 'as written', kernel: () => kernel },
    ...denseOf(kernel, tensors),
  ]
}

async function standardIn(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Other> {
  const name = 'standard'
  try {
    const standard = await standardOf(kernel, device, inputs)
    return { name, schedule: standard.schedule, kernel: () => standard.kernel }
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    const refuse = (): never => {
      throw e
    }
    return { name, schedule: kernel.dispatch, kernel: refuse }
  }
}

/** Each sparse input, stored dense, where it is not too large. */
export function denseOf(kernel: Kernel, tensors: NonNullable<Inputs['tensors']>): readonly Other[] {
  const { source } = kernel
  const axes = allAxesOf(source)
  return callerTensors(source).flatMap((t): Other[] => {
    const { name } = t
    const tensor = tensors[name]
    const shape = tensor?.shape
    const isInput = t.first.role === 'in' && t.axes.every((a) => isStructured(axes, a) || t.axes.length > 1)
    if (!isInput || !shape || !t.axes.some((a) => isStructured(axes, a))) return []
    const elements = shape.reduce((n, x) => n * x, 1)
    if (elements > MOST_DENSE) return []
    const filled = elements / Math.max(1, storedOf(tensor!) ?? elements)
    const order = bindingOf(source, name).dimensions.length
    const text = denseText(order, freeName(kernel))
    return [
      { name: `${name} dense`, declaration: text, filled, kernel: () => kernel.as(name, formatOf(text)) },
    ]
  })
}

/** A format name unused in the program, so that the winner's steps can be parsed with it. */
function freeName({ formats }: Kernel): string {
  let name = 'dense'
  for (let n = 2; formats.has(name); n++) name = `dense_${n}`
  return name
}

/** Every coordinate, in row-major order. */
function denseText(order: number, name: string): string {
  const over = Array.from({ length: order }, (_, d) => `i${d}`)
  const stored = over.map((a) => `${a}o`)
  return `format ${name} over (${over.join(', ')}) {
${over.map((a, d) => `  axis ${stored[d]} = dense_fixed(${a})\n`).join('')}  map (${over.join(', ')}) -> (${over.join(', ')})
  inverse (${stored.join(', ')}) -> (${stored.join(', ')})
}
`
}

const formats = new Map<string, AnyFormat>()

function formatOf(text: string): AnyFormat {
  const [made] = formats.has(text) ? [formats.get(text)!] : parseProgram(text, 'dense.spt').formats.values()
  formats.set(text, made!)
  return made!
}
