/** Name resolution of what a caller binds: what each name stands for. */
import { fail } from '../../ast/diagnostic.ts'
import { chainTo, isStored } from '../../ir/axis.ts'
import { add, type Expr, int, variable } from '../../ir/expr.ts'
import { givenTables, segmentsOf } from '../../ir/format-tables.ts'
import type { Buffer1, Kernel1 } from '../../ir/stage1.ts'
import type { Tensor } from '../../storage/tensor.ts'
import {
  allAxesOf,
  asDeclared,
  type CallerTensor,
  callerTensors,
  givenOf,
  isStructured,
  storedAxis,
} from './caller-tensors.ts'
import { isOfFormat, nameInText, tableInText, underOwnNames } from './ready-made-names.ts'

export interface Dimension {
  /** Of the axis; for a list, its own. */
  readonly name: string
  readonly extent: Expr
}

/**
 * `tensor`: in the coordinates it is declared over. `part`: ready-made arrays of one buffer of a tensor. `table`:
 * a ready-made table of a format, with ready-made parts. `axis`: structure alone, on the chain down to an axis.
 * `list`, `set`: arguments of formats.
 */
export type Binding = { readonly dimensions: readonly Dimension[] } & (
  | { readonly kind: 'tensor'; readonly tensor: CallerTensor }
  | { readonly kind: 'part'; readonly tensor: CallerTensor; readonly buffer: Buffer1 }
  | { readonly kind: 'table'; readonly buffer: Buffer1 }
  | { readonly kind: 'axis'; readonly chain: readonly string[] }
  | { readonly kind: 'list' | 'set' }
)

/**
 * `besides`: other names that may be bound where this one is.
 * @throws SptError `bind/unknown-name`, `bind/part` (arrays that nothing tells)
 */
export function bindingOf(
  kernel: Kernel1,
  name: string,
  tensor?: Tensor,
  besides: Iterable<string> = [],
): Binding {
  const found = bindingIn(kernel, name, tensor)
  if (found) return found
  const names = [...callerTensors(kernel).map((t) => t.name), ...givenOf(kernel).keys()]
  const tables = tablesMade(kernel).map((b) => nameInText(kernel, b))
  // What is dense has no structure to bring: axes of what the kernel makes for itself are.
  const all = allAxesOf(kernel)
  const axes = [...all].flatMap(([a, x]) =>
    isStored(x) && isStructured(all, a) && !isOfTable(kernel, a) ? [a] : [],
  )
  const candidates = [...new Set([...names, ...axes, ...tables, ...besides])]
  return fail({
    code: 'bind/unknown-name',
    message: `kernel ${kernel.name} has no buffer or axis ${name}`,
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
    hint: 'bind the name that the kernel declares',
  })
}

/** The same; `null` of a name that stands for nothing. @throws SptError `bind/part` */
export function bindingIn(kernel: Kernel1, name: string, tensor?: Tensor): Binding | null {
  const axes = allAxesOf(kernel)
  const over = (names: readonly string[]): Dimension[] =>
    names.map((a) => ({ name: a, extent: storedAxis(axes, a).extent }))
  const tensors = callerTensors(kernel)
  const whole = tensors.find((t) => t.name === name)
  if (whole) {
    const isAlone = whole.buffers.length === 1
    if (tensor?.kind !== 'stored' || asDeclared(whole) || !isAlone || !isOfFormat(kernel, whole, tensor))
      return { kind: 'tensor', tensor: whole, dimensions: over(whole.axes) }
    return { kind: 'part', tensor: whole, buffer: whole.first, dimensions: over(whole.first.axes) }
  }
  for (const t of tensors) {
    const buffer = t.buffers.find((b) => b.name === name)
    if (buffer) return { kind: 'part', tensor: t, buffer, dimensions: over(buffer.axes) }
  }
  const given = givenOf(kernel).get(name)
  if (given) {
    const length = add(variable(segmentsOf(name)), int(1))
    const dimensions =
      given.kind === 'list' ? [{ name, extent: length }] : over(given.of.from.map((a) => a.name))
    return { kind: given.kind, dimensions }
  }
  const axis = isOfTable(kernel, name) ? undefined : axes.get(name)
  const table =
    tablesMade(kernel).find((b) => b.name === name) ?? (axis ? undefined : tableInText(kernel, name))
  // How long a list or mask of a format is, the axes above it say, whose arrays come with it.
  const many = { name, extent: variable(`#${name}`) }
  if (table)
    return {
      kind: 'table',
      buffer: table,
      dimensions: table.mask !== undefined || table.axes.length > 1 ? [many] : over(table.axes),
    }
  if (axis && isStored(axis)) {
    const chain = chainTo(axes, name)
    return { kind: 'axis', chain, dimensions: over(chain) }
  }
  return null
}

/** Tables that formats make of what is brought into them. */
function tablesMade({ buffers, reformats }: Kernel1): readonly Buffer1[] {
  const given = givenTables(reformats)
  return buffers.filter((b) => b.table && !given.has(b.name))
}

/** Whether an axis is there for the positions of a format's table alone: no text has a name for it. */
const isOfTable = ({ buffers }: Kernel1, axis: string): boolean =>
  buffers.some((b) => b.table && b.mask === undefined && b.axes.at(-1) === axis)

/** The axes of what is bound by coordinates: a tensor's as declared, or the chain down to an axis. */
export function axesOfBinding(kernel: Kernel1, name: string): readonly string[] {
  const b = bindingOf(kernel, name)
  if (b.kind === 'axis') return b.chain
  if (b.kind === 'tensor') return b.tensor.axes
  return b.dimensions.map((d) => d.name)
}

/** Tensors by name, tables and ready-made arrays of parts by the names that the kernel has for them. @throws SptError as `bindingOf` */
export const underKernelNames = (
  kernel: Kernel1,
  tensors: Readonly<Record<string, Tensor>>,
): Map<string, Tensor> =>
  new Map(
    Object.entries(tensors).map(([name, tensor]) => {
      const b = bindingOf(kernel, name, tensor)
      const isPart = b.kind === 'part' && tensor.kind === 'stored'
      if (b.kind === 'table') return [b.buffer.name, tensor]
      return [name, isPart ? underOwnNames(kernel, b.buffer, tensor) : tensor]
    }),
  )
