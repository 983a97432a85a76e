/** Tables that are bound next to ready-made parts. */
import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import type { Table } from '../../../ir/formats/format.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { MASK_BITS, unpackFields } from '../../../ir/values/packed-fields.ts'
import type { FormatOperands } from '../../../storage/format-operands.ts'
import { checkPermutation } from '../../../storage/ready/validate.ts'
import type { Storage } from '../../../storage/storage.ts'
import { convertValues, filledArray, type Tensor, type ValueArray } from '../../../storage/tensor.ts'
import { bindPlan, type CallerTensor, maskOver } from '../bind-plan.ts'

/** A tensor whose parts are ready-made, with all bound values. */
export interface ReadyTensor {
  readonly kernel: Kernel1
  readonly t: CallerTensor
  readonly tensors: ReadonlyMap<string, Tensor>
  readonly known: FormatOperands
}

/** The tables of a tensor's formats, by name: bound with the parts, or list arguments. */
export function tablesOf(ready: ReadyTensor): Map<string, Int32Array> {
  const { kernel, t, known } = ready
  const out = new Map<string, Int32Array>()
  const mine = new Set(t.buffers.flatMap((b) => b.axes))
  for (const r of kernel.reformats)
    for (const { instance } of r.instance.parts) {
      if (!instance.order.some((a) => mine.has(a))) continue
      for (const table of instance.tables)
        out.set(
          table.name,
          table.kind === 'list' ? known.lists.get(table.source)! : broughtTable(ready, table),
        )
    }
  for (const { mask, name, axes } of kernel.buffers)
    if (mask !== undefined && axes.some((a) => mine.has(a)))
      out.set(name, brought(ready, name, 'mask', 'words of bits'))
  return out
}

/** Returns a bound table. Permutations are checked here, lists and masks together with the arrays of their part. */
const broughtTable = (ready: ReadyTensor, table: Table): Int32Array =>
  table.kind === 'sort'
    ? checkPermutation(table, brought(ready, table.name, 'order', 'a permutation'), ready.known.sizes)
    : brought(ready, table.name, 'list', 'coordinates')

function brought(
  { kernel, t, tensors }: ReadyTensor,
  name: string,
  kind: 'order' | 'list' | 'mask',
  what: string,
): Int32Array {
  // A list or set argument of a later format may have the same name.
  const given = bindPlan(kernel).operands.get(name)
  if (given)
    failWith(
      'bind/table',
      `the parts of ${t.name} are ready-made, and ${name} is the ${kind} that goes with them, and a ${given.kind} that ${given.of.format} takes`,
      {
        expected: 'an array for each name',
        hint: `pass the ${given.kind} to ${given.of.format} under another name, or store ${given.of.source ?? 'that tensor'} before ${t.name}`,
      },
    )
  const tensor = tensors.get(name)
  if (!tensor)
    return failWith(
      'bind/missing-table',
      `the parts of ${t.name} are ready-made, and the ${kind} that goes with them, ${name}, is not bound`,
      { expected: `a dense i32 tensor: ${what}`, hint: `bind ${name}` },
    )
  const values = tensor.values
  if (tensor.kind !== 'dense' || !(values instanceof Int32Array))
    return failWith(
      'bind/table',
      `the table ${name} is bound to a ${tensor.kind} tensor of type ${tensor.dtype}`,
      { expected: `a dense i32 tensor: ${what}`, hint: `bind dense([n], Int32Array.of(…), 'i32')` },
    )
  return values
}

// Ready-made values of a buffer, in storage order.

interface Place {
  readonly kernel: Kernel1
  readonly b: Buffer1
  readonly storage: Storage
  readonly masks: ReadonlyMap<string, ValueArray>
}

/** Converts values to the buffer's type, and sets padding under a mask to the fill value, because kernels may read it. */
export function readyValues(
  { kernel, b, storage, masks }: Place,
  values: ValueArray,
  dtype: Dtype,
): ValueArray {
  const own = convertValues(values, dtype, b.dtype, (at) => `element ${at} of ${b.name}`)
  const mask = maskOver(kernel, b)
  const words = mask && masks.get(mask.name)
  if (!mask || !words) return own
  // A mask covers a tree completely, or not at all.
  const trees = storage.trees.map((tree) => ({
    size: tree.at(-1)!.positions,
    isMasked: mask.axes.includes(tree[0]!.axis.name),
  }))
  const count = trees.reduce((n, t) => n * (t.isMasked ? t.size : 1), 1)
  const held = unpackFields(words as Int32Array, MASK_BITS, count)
  const out = filledArray(b.dtype, own.length, b.fill)
  for (let p = 0; p < own.length; p++) {
    let [rest, at, step] = [p, 0, 1]
    for (let k = trees.length - 1; k >= 0; k--) {
      const { size, isMasked } = trees[k]!
      if (isMasked) {
        at += (rest % size) * step
        step *= size
      }
      rest = Math.floor(rest / size)
    }
    if (held[at] === 1) out[p] = own[p]!
  }
  return out
}
