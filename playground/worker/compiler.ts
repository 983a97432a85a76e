/** All calls of the compiler's API: programs, kernels under a format and a schedule, their texts, pictures and runs. */

import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { readProgram } from '../../src/api/programs/program.ts'
import { type Device, devices, type SptProgram } from '../../src/index.ts'
import { isDense } from '../../src/ir/coordinates/axis.ts'
import { freeVars } from '../../src/ir/expressions/expr-tree.ts'
import { drawCoords } from '../../src/pictures/picture/index.ts'
import { type CoordTensor, convertValues } from '../../src/storage/tensor.ts'
import type { DeviceChoice, KernelInfo, Loops, Picture, Problem, Variant } from '../protocol.ts'
import { errorText, MAIN } from './diagnostics.ts'
import { matrixOf } from './matrices.ts'
import { packageTrees, readText } from './package-files.ts'

/** Formats that can be selected without an import. */
const STANDARD = `import "sparsetile/kernels/formats.spt"\nimport "sparsetile/kernels/formats-composed.spt"\n`
/** Initial sizes; the small one for kernels over many axes, where the reference has much to compute. */
const USUAL = 32
const SMALL = 8
const MANY_AXES = 4
/** Most states of the loops that are printed. */
const MAX_STATES = 80

let latest: { readonly text: string; readonly program: Promise<SptProgram> } | null = null
let standard: Promise<SptProgram> | null = null

const readFrom = (text: string): Promise<SptProgram> =>
  readProgram(
    // A path, not a text: the tree of the first example may be ready-made.
    MAIN,
    { files: async () => text, imports: readText, trees: packageTrees },
  )

/** The program of a text; the latest one is kept, also its errors. */
export function programOf(text: string): Promise<SptProgram> {
  if (latest?.text !== text) latest = { text, program: readFrom(text) }
  latest.program.catch(() => {})
  return latest.program
}

function standardFormats(): Promise<SptProgram> {
  standard ??= readFrom(STANDARD)
  standard.catch(() => {
    standard = null
  })
  return standard
}

interface MatrixTarget {
  /** The buffer, or the axis if no input has the structure, to which the matrix is bound. */
  readonly name: string
  /** The buffer that is stored in a format. */
  readonly buffer: string
}

/**
 * The target of a matrix: the first sparse input with two dimensions, otherwise the axis of another sparse buffer, whose
 * structure must be bound.
 */
function matrixTarget({ source: { axes, buffers } }: Kernel): MatrixTarget | null {
  const isSparse = (name: string): boolean => axes.some((a) => a.name === name && !isDense(a))
  const pairs = buffers.filter((b) => b.axes.length === 2 && !b.table)
  const sparse = pairs.filter((b) => isSparse(b.axes[1]!) && !isSparse(b.axes[0]!))
  const input = sparse.find((b) => b.role === 'in' || b.role === 'inout')
  if (input) return { name: input.name, buffer: input.name }
  return sparse[0] ? { name: sparse[0].axes[1]!, buffer: sparse[0].name } : null
}

export function kernelInfo(kernel: Kernel): KernelInfo {
  const { axes, buffers, params } = kernel.source
  const matrix = matrixTarget(kernel)?.buffer ?? null
  const bound = new Set(buffers.find((b) => b.name === matrix)?.axes)
  const known = new Set(
    axes.filter((a) => bound.has(a.name)).flatMap((a) => ('extent' in a ? [...freeVars(a.extent)] : [])),
  )
  return {
    name: kernel.name,
    schedules: [...kernel.dispatches, ...kernel.schedules].map((name) => ({
      name,
      parameters: kernel.parameters(name),
    })),
    matrix,
    values: params
      .filter((p) => !p.measured && !known.has(p.name))
      .map((p) => ({
        name: p.name,
        kind: p.kind,
        integer: p.kind === 'size' || /^[iu]/.test(p.dtype),
        initial: p.kind === 'scalar' ? 1 : matrix === null && axes.length > MANY_AXES ? SMALL : USUAL,
      })),
    names: [...axes, ...buffers, ...params].map((x) => x.name),
  }
}

/** Splits `gpu(8, 32)`. */
function callOf(schedule: string): { readonly name: string; readonly args: readonly (number | undefined)[] } {
  const [, name, list] = /^\s*([\w.]+)\s*(?:\((.*)\))?\s*$/.exec(schedule) ?? []
  if (name === undefined) throw new Error(`'${schedule}' is not a schedule; expected: NAME, or NAME(8, 32)`)
  const args = list?.trim() ? list.split(',').map((a) => Number(a)) : []
  if (args.some((a) => !Number.isInteger(a)))
    throw new Error(`the arguments of '${schedule}' are not integers; expected: ${name}(8, 32)`)
  return { name, args }
}

export async function inFormat(program: SptProgram, kernel: Kernel, format: string): Promise<Kernel> {
  const tensor = matrixTarget(kernel)?.buffer
  if (tensor === undefined)
    throw new Error(`kernel ${kernel.name} has no matrix that can be stored as ${format}`)
  const [name = ''] = /^\s*\w+/.exec(format) ?? []
  if (program.formats.has(name.trim())) return kernel.as(tensor, format)
  const library = await standardFormats()
  if (!library.formats.has(name.trim())) return kernel.as(tensor, format)
  // The format of another program, as a value: the text need not import it.
  const { format: value, args } = callOfFormat(library, format)
  return kernel.as(tensor, value, ...args)
}

function callOfFormat(library: SptProgram, format: string) {
  const [, name = '', list] = /^\s*(\w+)\s*(?:\(([^()]*)\))?\s*$/.exec(format) ?? []
  const value = library.formats.get(name)
  if (!value)
    throw new Error(`import "sparsetile/kernels/formats.spt" in the text to use the expression ${format}`)
  const args = list?.trim() ? list.split(',').map((a) => a.trim()) : []
  return { format: value, args: args.map((a) => (Number.isFinite(Number(a)) ? Number(a) : a)) }
}

export interface Base {
  readonly program: SptProgram
  /** Without steps. */
  readonly kernel: Kernel
  readonly inputs: RunInputs
  readonly tensor: CoordTensor | null
}

export async function baseOf(problem: Problem): Promise<Base> {
  const program = await programOf(problem.text)
  const kernel = program.kernel(problem.kernel)
  const target = matrixTarget(kernel)
  const values = Object.fromEntries(
    kernelInfo(kernel).values.map((v) => [v.name, problem.values[v.name] ?? v.initial]),
  )
  if (target === null) return { program, kernel, inputs: { params: values, seed: 1 }, tensor: null }
  const tensor = await matrixOf(problem.matrix)
  const { dtype } = kernel.source.buffers.find((b) => b.name === target.buffer)!
  const converted = tensor.values ? { values: convertValues(tensor.values, tensor.dtype, dtype) } : {}
  const bound = { ...tensor, ...converted, dtype }
  return { program, kernel, inputs: { tensors: { [target.name]: bound }, params: values, seed: 1 }, tensor }
}

interface Scheduled {
  readonly kernel: Kernel
  readonly note: string
}

/** The kernel in the variant's format and under its schedule. `device`: for the default schedule and for dispatches. */
export async function scheduled(
  base: Base,
  variant: Variant,
  device: 'cpu' | 'webgpu' | 'cuda' | Device,
): Promise<Scheduled> {
  const { program, inputs } = base
  const kernel = variant.format.trim() ? await inFormat(program, base.kernel, variant.format) : base.kernel
  if (variant.schedule.trim()) {
    const { name, args } = callOf(variant.schedule)
    const open = kernel.schedule(name, ...args)
    return kernel.dispatches.includes(name) ? dispatched(open, device, inputs) : { kernel: open, note: '' }
  }
  if (kernel.dispatch !== null) return dispatched(kernel, device, inputs)
  const { params = {}, tensors = {} } = inputs
  const sizes = Object.fromEntries(
    kernel.source.params.flatMap((p) =>
      p.kind === 'size' && p.name in params ? [[p.name, Number(params[p.name])]] : [],
    ),
  )
  const automatic = kernel.autoSchedule(device, sizes, variant.format.trim() ? undefined : tensors)
  return {
    kernel: automatic,
    note: automatic === kernel ? '' : 'default schedule: selected by the auto-scheduler',
  }
}

async function dispatched(
  open: Kernel,
  device: Parameters<typeof scheduled>[2],
  inputs: RunInputs,
): Promise<Scheduled> {
  const { kernel, selection } = await open.choose(device, ...flatInputs(inputs))
  return { kernel, note: `${selection.dispatch} selected ${selection.text} because of: ${selection.reason}` }
}

/** The loops before and after each step. */
export async function loopsOf(problem: Problem, variant: Variant, device: DeviceChoice): Promise<Loops> {
  const base = await baseOf(problem)
  const states: { step: string; text: string }[] = []
  let kernel = base.kernel
  const add = (next: Kernel): void => {
    const [, ...more] = next.trace.slice(kernel.trace.length)
    const [step = 'no effect'] = next.trace.slice(kernel.trace.length)
    if (states.length < MAX_STATES)
      states.push({
        step:
          states.length === 0
            ? 'as declared'
            : more.length > 0
              ? `${step} … (${more.length + 1} steps)`
              : step,
        text: next.show(2),
      })
    kernel = next
  }
  add(kernel)
  try {
    if (variant.format.trim()) add(await inFormat(base.program, kernel, variant.format))
    const { name, args } = variant.schedule.trim() ? callOf(variant.schedule) : { name: '', args: [] }
    if (base.kernel.schedules.includes(name)) {
      for (const step of kernel.steps(name, ...args)) add(kernel.apply([step]))
      return { states, note: '' }
    }
    const { kernel: final, note } = await scheduled(base, variant, device)
    for (const step of final.toJSON().slice(kernel.toJSON().length)) add(kernel.replay([step]))
    return { states, note }
  } catch (e) {
    return { states, note: '', error: errorText(e) }
  }
}

const LANGUAGE_DEVICE = { js: 'cpu', wgsl: 'webgpu', cuda: 'cuda' } as const

export async function codeOf(problem: Problem, variant: Variant, target: keyof typeof LANGUAGE_DEVICE) {
  const { kernel, note } = await scheduled(await baseOf(problem), variant, LANGUAGE_DEVICE[target])
  const modules = (target === 'js' ? kernel : kernel.parallel()).emit(target)
  return { text: modules.map((m) => m.text.trimEnd()).join('\n\n'), note }
}

/** The picture of the matrix in the variant's format. */
export async function pictureOf(problem: Problem, variant: Variant): Promise<Picture> {
  const base = await baseOf(problem)
  const name = matrixTarget(base.kernel)?.buffer
  if (name === undefined || base.tensor === null)
    throw new Error(
      `kernel ${problem.kernel} has no sparse matrix to draw: its sparse input does not have two dimensions`,
    )
  const { kernel } = await scheduled(base, variant, 'cpu')
  const reformat = kernel.compilation.kernel.reformats.find((r) => r.buffers.some((b) => b.name === name))
  const asDeclared = (): Picture => {
    const count = base.tensor!.coords[0]!.length
    return {
      svg: drawCoords(base.tensor!, { name }),
      format: 'as declared',
      nonzeros: count,
      slots: count,
      bytes: 0,
      csrBytes: 0,
      parts: 1,
    }
  }
  if (!reformat) return asDeclared()
  const library = base.program.formats.has(/^\w+/.exec(reformat.format)?.[0] ?? '')
    ? base.program
    : await standardFormats()
  const converted = library.format(reformat.format).convert(base.tensor)
  const report = converted.describe()
  return {
    svg: await converted.svg({ name }),
    format: report.format,
    nonzeros: report.stored,
    slots: report.slots,
    bytes: report.bytes,
    csrBytes: report.compressedBytes,
    parts: report.parts.length,
  }
}

const opened = new Map<DeviceChoice, Promise<Device>>()

export function deviceOf(kind: DeviceChoice): Promise<Device> {
  const known = opened.get(kind)
  if (known) return known
  const device = devices[kind]()
  opened.set(kind, device)
  device.catch(() => opened.delete(kind))
  return device
}
