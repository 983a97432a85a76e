/** Which resident tensors a kernel can be bound to. */
import { fail } from '../ast/diagnostic.ts'
import type { Instance } from '../ir/format.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { allAxesOf, callerTensor, isStructured } from '../run/bind/caller-tensors.ts'
import { givenOperands } from '../run/bind/format-inputs.ts'
import type { Bound } from '../run/bind/index.ts'
import { checkOrder } from '../storage/convert.ts'
import {
  type Column,
  checkNotFreed,
  type DevicePart,
  type Resident,
  type ResidentParts,
} from '../storage/engines/device/index.ts'
import type { FormatOperands } from '../storage/format-operands.ts'
import type { Tensor } from '../storage/tensor.ts'
import { checkTensor, expectArgument, expectOptions, isRecord } from './argument-checks.ts'
import type { CompiledKernel } from './compiled.ts'

/** @throws SptError `api/argument`, `device/freed` */
export function checkResident(tensor: Resident, what = 'a resident tensor'): void {
  const holds = isRecord(tensor) && Array.isArray(tensor.shape) && isRecord(tensor.queue)
  expectArgument(holds, what, tensor, 'what resident or a conversion gives')
  checkNotFreed(tensor)
}

/**
 * What a format is given for a conversion on a device, checked as where a tensor is brought into it on the host. The tensor's
 * shape says how long dimensions are.
 * @throws SptError `api/argument`, `bind/…`, `format/unknown-name` (a size that is not there)
 */
export function checkedOperands(
  to: Instance,
  shape: readonly number[],
  given: FormatOperands,
): FormatOperands {
  checkOrder(shape, to)
  for (const kind of ['list', 'set'] as const) {
    const taken = to.given.flatMap((g) => (g.kind === kind ? [g.name] : []))
    expectOptions(`the ${kind}s of ${to.text}`, Object.fromEntries(given[`${kind}s`]), taken)
  }
  const extents = new Map(to.over.map((a, k) => [a.name, shape[k]!]))
  const sizes = new Map(given.sizes)
  for (const [k, { extent }] of to.over.entries())
    if (extent.kind === 'var') sizes.set(extent.name, shape[k]!)
  const operands = givenOperands({ instance: to, sizes, extents }, (name, kind): Tensor | undefined => {
    const own: unknown = given[`${kind}s`].get(name)
    if (own === undefined) return undefined
    if (kind === 'list') {
      const list = own as Int32Array
      expectArgument(list instanceof Int32Array, `the list ${name}`, list, 'an Int32Array')
      return { kind: 'dense', shape: [list.length], values: list, dtype: 'i32' }
    }
    const columns = `one Int32Array of coordinates for each of ${to.over.map((a) => a.name).join(', ')}`
    expectArgument(Array.isArray(own) && own.length === shape.length, `the set ${name}`, own, columns)
    const set: unknown = { kind: 'coords', shape, coords: own, values: null, dtype: 'f32' }
    checkTensor(name, set)
    return set
  })
  return { ...given, ...operands }
}

/** @throws SptError `convert/other-format`, `convert/dtype`, `device/freed` */
export function checkFormat(
  compiled: CompiledKernel,
  name: string,
  tensor: ResidentParts,
  to: Instance,
): void {
  if (tensor.instance !== to)
    fail({
      code: 'convert/other-format',
      message: `${name} is resident in ${tensor.instance.text}, not in the kernel's own ${to.text}`,
      expected: 'a tensor that was converted to formatOf(kernel, name)',
      hint: 'the same text instantiated elsewhere has other names',
    })
  checkNotFreed(tensor)
  const buffer = compiled.compilation.source.buffers.find((b) => b.name === name)
  if (buffer && buffer.dtype !== tensor.dtype)
    fail({
      code: 'convert/dtype',
      message: `${name} is resident as ${tensor.dtype}; the kernel declares ${buffer.dtype}`,
      expected: buffer.dtype,
      hint: 'convert the values before they are uploaded',
    })
}

/**
 * The lists that tensors were brought into their formats with are those that are bound, which say how many segments there are.
 * @throws SptError `convert/other-format`
 */
export function checkSameLists(
  tensors: Readonly<Record<string, ResidentParts>>,
  bound: Readonly<Record<string, Tensor>>,
): void {
  for (const [name, { instance, given }] of Object.entries(tensors))
    for (const [list, cuts] of given.lists) {
      const now = bound[list]?.values
      if (!now || (now.length === cuts.length && cuts.every((x, k) => x === now[k]))) continue
      fail({
        code: 'convert/other-format',
        message: `${name} is resident in ${instance.text} with another list ${list} than the one that is bound`,
        expected: 'the list that it was converted with',
        hint: `convert ${name} again, or bind that list`,
      })
    }
}

/**
 * The structure of a resident tensor is the device's alone: nothing that is bound from the host can have it, or add to it.
 * @throws SptError `convert/shared`
 */
export function checkShared(kernel: Kernel1, names: readonly string[], bound: Bound): void {
  const axes = allAxesOf(kernel)
  for (const name of names) {
    const structured = callerTensor(kernel, name)?.axes.filter((a) => isStructured(axes, a)) ?? []
    const other = bound
      .sources()
      .find((s) => !names.includes(s.name) && s.axes.some((a) => structured.includes(a)))
    if (other)
      fail({
        code: 'convert/shared',
        message: `${other.name} is bound from the host, and has the structure of ${name}, which is resident`,
        expected: `${other.name} resident in the same format, with the same coordinates`,
        hint: `bring ${other.name} to the device too (convertFor), or bind ${name} from the host (prepare)`,
      })
  }
}

/**
 * Tensors over the same axes have one structure, of which the kernel gets one set of arrays. They are only looked at
 * where there are two.
 * @throws SptError `convert/shared`
 */
export async function checkAgree(
  tensors: Readonly<Record<string, ResidentParts>>,
  placed: readonly { readonly tensor: string; readonly part: DevicePart }[],
): Promise<void> {
  const known = new Map<string, { readonly tensor: string; readonly column: Column }>()
  for (const { tensor, part } of placed)
    for (const [name, column] of columnsOf(part)) {
      const first = known.get(name)
      if (!first) known.set(name, { tensor, column })
      else if (!(await equal(tensors[tensor]!, first.column, column)))
        fail({
          code: 'convert/shared',
          message: `${first.tensor} and ${tensor} have one structure in the kernel, and other coordinates`,
          expected: 'the same coordinates, in the same parts',
          hint: 'give both all coordinates that either has, or bind them from the host (prepare), where they are united',
        })
    }
}

/** Arrays that tell positions, by what they belong to. */
function columnsOf({ levels, tables }: DevicePart): [name: string, column: Column][] {
  const out: [string, Column][] = []
  for (const [axis, level] of levels)
    for (const kind of ['indptr', 'indices', 'mask'] as const) {
      const column = level[kind]
      if (column) out.push([`${kind} of ${axis}`, column])
    }
  for (const [name, column] of tables) out.push([name, column])
  return out
}

async function equal({ queue }: ResidentParts, a: Column, b: Column): Promise<boolean> {
  if (a === b) return true
  if (a.length !== b.length) return false
  const [x, y] = [await queue.download(a), await queue.download(b)]
  return x.every((value, k) => value === y[k])
}
