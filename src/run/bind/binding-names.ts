/** Name resolution of bound values: the tensor, part, table, axis or format argument that each name refers to. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { arraysOfAxis, chainTo, isStored, parentOf } from '../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { add, type Expr, int, variable } from '../../ir/expressions/expr.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import { givenTables, labelled, segmentsOf } from '../../ir/formats/format-tables.ts'
import { getOrAdd, memoize } from '../../ir/memoize.ts'
import type { StoredTensor, Tensor } from '../../storage/tensor.ts'
import {
  allAxesOf,
  bindPlan,
  type CallerTensor,
  callerTensors,
  isStructured,
  storedAxis,
} from './bind-plan.ts'

export interface Dimension {
  /** Name of the axis; for a list, the name of the list. */
  readonly name: string
  readonly extent: Expr
}

/**
 * `tensor`: a tensor in declared coordinates. `part`: ready-made arrays of one buffer of a tensor. `table`: a ready-made table of a
 * format, next to ready-made parts. `axis`: structure without values, on the chain from the root to an axis. `list`, `set`: arguments of
 * formats.
 */
export type Binding = { readonly dimensions: readonly Dimension[] } & (
  | { readonly kind: 'tensor'; readonly tensor: CallerTensor }
  | { readonly kind: 'part'; readonly tensor: CallerTensor; readonly buffer: Buffer1 }
  | { readonly kind: 'table'; readonly buffer: Buffer1 }
  | { readonly kind: 'axis'; readonly chain: readonly string[] }
  | { readonly kind: 'list' | 'set' }
)

/** Resolves a bound name; `besides`: further suggestions. Throws SptError `bind/unknown-name`, `bind/part`. */
export function bindingOf(
  kernel: Kernel1,
  name: string,
  tensor?: Tensor,
  besides: Iterable<string> = [],
): Binding {
  const found = bindingIn(kernel, name, tensor)
  if (found) return found
  const names = [
    ...callerTensors(kernel).flatMap((t) => (t.first.role === 'local' ? [] : [t.name])),
    ...bindPlan(kernel).operands.keys(),
  ]
  const tables = tablesMade(kernel).map((b) => nameInText(kernel, b))
  // Only axes with stored structure can be bound: dense axes have none, and the kernel computes its own tables.
  const { axes: all } = bindPlan(kernel)
  const axes = [...all].flatMap(([a, x]) =>
    isStored(x) && isStructured(all, a) && !isOfTable(kernel, a) ? [a] : [],
  )
  const candidates = [...new Set([...names, ...axes, ...tables, ...besides])]
  return failWith('bind/unknown-name', `kernel ${kernel.name} has no buffer or axis ${name}`, {
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
    hint: 'bind the name that the kernel declares',
  })
}

/** Resolves a bound name like `bindingOf`, but returns `null` for an unknown name. Throws SptError `bind/part`. */
export function bindingIn(kernel: Kernel1, name: string, tensor?: Tensor): Binding | null {
  const binding = getOrAdd(bindingsOf(kernel), name, () => resolved(kernel, name))
  if (binding?.kind !== 'tensor' || tensor?.kind !== 'stored') return binding
  const { asDeclared, buffers, first } = binding.tensor
  return asDeclared || buffers.length > 1 || !isOfFormat(kernel, binding.tensor, tensor)
    ? binding
    : partBinding(kernel, binding.tensor, first)
}

const bindingsOf = memoize((_: Kernel1) => new Map<string, Binding | null>())

const dimensionsOf = (kernel: Kernel1, names: readonly string[]): Dimension[] =>
  names.map((name) => ({ name, extent: storedAxis(bindPlan(kernel).axes, name).extent }))

const partBinding = (kernel: Kernel1, tensor: CallerTensor, buffer: Buffer1): Binding => ({
  kind: 'part',
  tensor,
  buffer,
  dimensions: dimensionsOf(kernel, buffer.axes),
})

function resolved(kernel: Kernel1, name: string): Binding | null {
  const { axes } = bindPlan(kernel)
  const over = (names: readonly string[]): Dimension[] => dimensionsOf(kernel, names)
  const tensors = callerTensors(kernel)
  const whole = tensors.find((t) => t.name === name)
  if (whole) return { kind: 'tensor', tensor: whole, dimensions: over(whole.axes) }
  for (const t of tensors) {
    const buffer = t.buffers.find((b) => b.name === name)
    if (buffer) return partBinding(kernel, t, buffer)
  }
  const given = bindPlan(kernel).operands.get(name)
  if (given) {
    const length = add(variable(segmentsOf(name)), int(1))
    const dimensions =
      given.kind === 'list' ? [{ name, extent: length }] : over(given.of.from.map((a) => a.name))
    return { kind: given.kind, dimensions }
  }
  const axis = isOfTable(kernel, name) ? undefined : axes.get(name)
  const table =
    tablesMade(kernel).find((b) => b.name === name) ?? (axis ? undefined : tableInText(kernel, name))
  // The length of a list or mask follows from the arrays of its enclosing axes.
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

/** Tables that formats compute during conversion, in contrast to list arguments. */
function tablesMade({ buffers, reformats }: Kernel1): readonly Buffer1[] {
  const given = givenTables(reformats)
  return buffers.filter((b) => b.table && !given.has(b.name))
}

/** Returns true if an axis only numbers the positions of a format's table, so no source text names it. */
const isOfTable = ({ buffers }: Kernel1, axis: string): boolean =>
  buffers.some((b) => b.table && b.mask === undefined && b.axes.at(-1) === axis)

/** The axes of a value that is bound by coordinates: the declared axes of a tensor, or the chain down to an axis. */
export function axesOfBinding(kernel: Kernel1, name: string): readonly string[] {
  const b = bindingOf(kernel, name)
  if (b.kind === 'axis') return b.chain
  if (b.kind === 'tensor') return b.tensor.axes
  return b.dimensions.map((d) => d.name)
}

/** Tensors with sparse structure; sizes describe dense tensors. */
export function sparseTensors(
  source: Kernel1,
  tensors: Readonly<Record<string, Tensor>>,
): Record<string, Tensor> {
  const axes = allAxesOf(source)
  const isSparse = (name: string): boolean => axesOfBinding(source, name).some((a) => isStructured(axes, a))
  return Object.fromEntries(Object.entries(tensors).filter(([name]) => isSparse(name)))
}

/** Renames tensors, and the ready-made arrays of parts and tables, to the kernel's names. Throws SptError like `bindingOf`. */
export const underKernelNames = (
  kernel: Kernel1,
  tensors: Readonly<Record<string, Tensor>>,
): Map<string, Tensor> =>
  new Map(
    [...Object.entries(tensors), ...copiesOf(kernel, tensors)].map(([name, tensor]) => {
      const b = bindingOf(kernel, name, tensor)
      const isPart = b.kind === 'part' && tensor.kind === 'stored'
      if (b.kind === 'table') return [b.buffer.name, tensor]
      return [name, isPart ? underOwnNames(kernel, b.buffer, tensor) : tensor]
    }),
  )

/** The tensors of copies, which are those of their originals. */
const copiesOf = (kernel: Kernel1, tensors: Readonly<Record<string, Tensor>>): [string, Tensor][] =>
  callerTensors(kernel).flatMap(({ name, first: { copyOf } }): [string, Tensor][] =>
    copyOf !== undefined && tensors[copyOf] && !(name in tensors) ? [[name, tensors[copyOf]]] : [],
  )

// Names of ready-made arrays: they decide whether arrays bound to a one-part tensor are over the format's
// axes or the declared axes. Names from the format's source are mapped to the kernel's names.

/** Pairs of a name in the source of a format (with and without the part's label) and its name in the kernel. */
const namesInTexts = (
  { reformats }: Kernel1,
  of: (instance: FormatInstance) => ReadonlyMap<string, string>,
): readonly (readonly [text: string, name: string])[] =>
  reformats.flatMap((r) =>
    r.instance.parts.flatMap(({ label, instance }) =>
      [...of(instance)].flatMap(([text, name]) => [
        [text, name] as const,
        ...(label === '' ? [] : [[labelled(text, label), name] as const]),
      ]),
    ),
  )

/** The table with this name in the source of a format; undefined if there is none. */
function tableInText(kernel: Kernel1, name: string): Buffer1 | undefined {
  const found = namesInTexts(kernel, (i) => i.arrayNames).findLast(([text]) => text === name)
  return found && kernel.buffers.find((b) => b.table && b.name === found[1])
}

/** Name of a table in the source of its format; its name in the kernel if parts share that name. */
function nameInText(kernel: Kernel1, table: Buffer1): string {
  const texts = namesInTexts(kernel, (i) => i.arrayNames).flatMap(([text, name]) =>
    name === table.name ? [text] : [],
  )
  return texts.find((text) => tableInText(kernel, text)?.name === table.name) ?? table.name
}

/** The axes of a buffer by their kernel names and by their names in the format's source. */
function axesByName(kernel: Kernel1, b: Buffer1): ReadonlyMap<string, string> {
  const texts = namesInTexts(kernel, (i) => i.names).filter(([, axis]) => b.axes.includes(axis))
  return new Map([...texts, ...b.axes.map((a) => [a, a] as const)])
}

/** Renames the arrays of a part to the kernel's axes; unknown names are kept, and rejected later. */
function underOwnNames(kernel: Kernel1, b: Buffer1, tensor: StoredTensor): StoredTensor {
  const own = axesByName(kernel, b)
  const names = Object.keys(tensor.arrays)
  // Arrays under the kernel's own name of an axis take precedence.
  const target = (name: string): string => {
    const axis = own.get(name)
    return axis === undefined || (axis !== name && names.includes(axis)) ? name : axis
  }
  if (names.every((name) => target(name) === name)) return tensor
  return {
    ...tensor,
    arrays: Object.fromEntries(Object.entries(tensor.arrays).map(([name, a]) => [target(name), a])),
  }
}

/**
 * Returns true if arrays bound to a one-part tensor are over the format's axes, and false if over the declared axes. A name that only one
 * of them has decides, otherwise the missing arrays do. Throws SptError `bind/part` if both are possible.
 */
function isOfFormat(kernel: Kernel1, t: CallerTensor, tensor: StoredTensor): boolean {
  const { name, first, axes: declared } = t
  const { axes } = bindPlan(kernel)
  const own = axesByName(kernel, first)
  const names = Object.keys(tensor.arrays)
  if (names.some((n) => own.has(n) && !declared.includes(n))) return true
  if (names.some((n) => !own.has(n) && declared.includes(n))) return false
  // Names of both belong to the format only if they name all its axes, as in `convert`.
  const named = names.flatMap((n) => own.get(n) ?? [])
  const both = names.some((n) => own.has(n) && own.get(n) !== n)
  if (both && !first.axes.every((a) => named.includes(a))) return false
  const lacks = (over: readonly string[], nameOf: (axis: string) => string): boolean =>
    over.some((a) => {
      const axis = storedAxis(axes, a)
      const own = arraysOfAxis(axis)
      // The offsets of a root may be left out.
      const wants = own.some((array) => array !== 'indptr') || (own.length > 0 && parentOf(axis) !== null)
      return wants && Object.keys(tensor.arrays[nameOf(a)] ?? {}).length === 0
    })
  const inFormat = !lacks(first.axes, (a) => names.find((n) => own.get(n) === a) ?? a)
  if (lacks(declared, (a) => a)) return inFormat
  if (!inFormat) return false
  const now = first.axes.join(', ')
  return failWith(
    'bind/part',
    `the arrays that are bound to ${name} can be over the declared axes, and over [${now}] of its format`,
    {
      expected: 'arrays that name an axis which one of the two alone has, or no ready-made arrays',
      hint: `in the order of [${now}]: stored(shape, { ${first.axes.map((a) => `${a}: {}`).join(', ')} }, values); by coordinates: dense(shape, values) or coords(shape, columns, values)`,
    },
  )
}
