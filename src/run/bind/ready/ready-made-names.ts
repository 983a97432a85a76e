/**
 * Names of ready-made arrays: they decide whether arrays bound to a one-part tensor are over the format's axes or the declared axes. Names
 * from the format's source are mapped to the kernel's names.
 */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import { arraysOfAxis, parentOf } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import { labelled } from '../../../ir/formats/format-tables.ts'
import type { StoredTensor } from '../../../storage/tensor.ts'
import { allAxesOf, type CallerTensor, storedAxis } from '../sources/caller-tensors.ts'

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
export function tableInText(kernel: Kernel1, name: string): Buffer1 | undefined {
  const found = namesInTexts(kernel, (i) => i.arrayNames).findLast(([text]) => text === name)
  return found && kernel.buffers.find((b) => b.table && b.name === found[1])
}

/** Name of a table in the source of its format; its name in the kernel if parts share that name. */
export function nameInText(kernel: Kernel1, table: Buffer1): string {
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
export function underOwnNames(kernel: Kernel1, b: Buffer1, tensor: StoredTensor): StoredTensor {
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
export function isOfFormat(kernel: Kernel1, t: CallerTensor, tensor: StoredTensor): boolean {
  const { name, first, axes: declared } = t
  const axes = allAxesOf(kernel)
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
  return fail({
    code: 'bind/part',
    message: `the arrays that are bound to ${name} can be over the declared axes, and over [${now}] of its format`,
    expected: 'arrays that name an axis which one of the two alone has, or no ready-made arrays',
    hint: `in the order of [${now}]: stored(shape, { ${first.axes.map((a) => `${a}: {}`).join(', ')} }, values); by coordinates: dense(shape, values) or coords(shape, columns, values)`,
  })
}
