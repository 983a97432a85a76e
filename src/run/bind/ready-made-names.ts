/**
 * Names of ready-made arrays. They tell whether what is bound to a tensor that one part stores is that part, or the tensor
 * as it is declared; and a format's own names stand for what the kernel, where these were taken, calls its axes.
 */
import { fail } from '../../ast/diagnostic.ts'
import { hasIndices, hasIndptr, hasMask, parentOf } from '../../ir/axis.ts'
import type { FormatInstance } from '../../ir/format.ts'
import { labelled } from '../../ir/format-tables.ts'
import type { Buffer1, Kernel1 } from '../../ir/stage1.ts'
import type { StoredTensor } from '../../storage/tensor.ts'
import { allAxesOf, type CallerTensor, storedAxis } from './caller-tensors.ts'

/** What the texts of formats, with and without the label of the part, call what the kernel has another name for. */
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

/** The table that the text of a format calls so. */
export function tableInText(kernel: Kernel1, name: string): Buffer1 | undefined {
  const found = namesInTexts(kernel, (i) => i.arrayNames).findLast(([text]) => text === name)
  return found && kernel.buffers.find((b) => b.table && b.name === found[1])
}

/** What the text of a format calls a table: the name by which one of several parts has it is as it is. */
export function nameInText(kernel: Kernel1, table: Buffer1): string {
  const texts = namesInTexts(kernel, (i) => i.arrayNames).flatMap(([text, name]) =>
    name === table.name ? [text] : [],
  )
  return texts.find((text) => tableInText(kernel, text)?.name === table.name) ?? table.name
}

/** The axes of a buffer by their names, and by those that the text of a format has for them. */
function axesByName(kernel: Kernel1, b: Buffer1): ReadonlyMap<string, string> {
  const texts = namesInTexts(kernel, (i) => i.names).filter(([, axis]) => b.axes.includes(axis))
  return new Map([...texts, ...b.axes.map((a) => [a, a] as const)])
}

/** The arrays of a part by the names of the kernel's axes; names that nothing has stay, to be refused. */
export function underOwnNames(kernel: Kernel1, b: Buffer1, tensor: StoredTensor): StoredTensor {
  const own = axesByName(kernel, b)
  const names = Object.keys(tensor.arrays)
  // What names the axis itself comes first.
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
 * Whether arrays that are bound to a tensor which a format stores in one part are over the format's axes, and not over those
 * that it is declared over: a name tells that one of the two alone has, else which axes go without the arrays that are missing.
 * @throws SptError `bind/part` (nothing tells)
 */
export function isOfFormat(kernel: Kernel1, t: CallerTensor, tensor: StoredTensor): boolean {
  const { name, first, axes: declared } = t
  const axes = allAxesOf(kernel)
  const own = axesByName(kernel, first)
  const names = Object.keys(tensor.arrays)
  if (names.some((n) => own.has(n) && !declared.includes(n))) return true
  if (names.some((n) => !own.has(n) && declared.includes(n))) return false
  // Declared names that the format's text has too are the format's where they name all of its axes, as `convert` does.
  const named = names.flatMap((n) => own.get(n) ?? [])
  const both = names.some((n) => own.has(n) && own.get(n) !== n)
  if (both && !first.axes.every((a) => named.includes(a))) return false
  const lacks = (over: readonly string[], nameOf: (axis: string) => string): boolean =>
    over.some((a) => {
      const axis = storedAxis(axes, a)
      const wants = hasIndices(axis) || hasMask(axis) || (hasIndptr(axis) && parentOf(axis) !== null)
      return wants && Object.keys(tensor.arrays[nameOf(a)] ?? {}).length === 0
    })
  const inFormat = !lacks(first.axes, (a) => names.find((n) => own.get(n) === a) ?? a)
  if (lacks(declared, (a) => a)) return inFormat
  if (!inFormat) return false
  const now = first.axes.join(', ')
  return fail({
    code: 'bind/part',
    message: `the arrays that are bound to ${name} can be over the axes that it is declared over, and over [${now}] of its format`,
    expected: 'arrays that name an axis which one of the two alone has, or no ready-made arrays',
    hint: `in the order of [${now}]: stored(shape, { ${first.axes.map((a) => `${a}: {}`).join(', ')} }, values); by coordinates: dense(shape, values) or coords(shape, columns, values)`,
  })
}
