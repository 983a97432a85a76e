/** Tables that come with ready-made parts. */
import { fail } from '../../ast/diagnostic.ts'
import type { Table } from '../../ir/format.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { checkPermutation } from '../../storage/ready/tables.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { CallerTensor } from './caller-tensors.ts'
import type { Known } from './remap-entries.ts'

/** Tables of the formats that a tensor was put into: sorts and lists of formats are brought with the parts, other lists were given. */
export function tablesOf(
  kernel: Kernel1,
  t: CallerTensor,
  tensors: ReadonlyMap<string, Tensor>,
  known: Known,
): Map<string, Int32Array> {
  const out = new Map<string, Int32Array>()
  const mine = new Set(t.buffers.flatMap((b) => b.axes))
  for (const r of kernel.reformats)
    for (const { instance } of r.instance.parts) {
      if (!instance.order.some((a) => mine.has(a))) continue
      for (const table of instance.tables)
        out.set(
          table.name,
          table.of === 'list' ? known.lists.get(table.source)! : brought(t, table, tensors, known),
        )
    }
  return out
}

/** Lists are looked at with the arrays that they go with. */
function brought(
  t: CallerTensor,
  table: Table,
  tensors: ReadonlyMap<string, Tensor>,
  known: Known,
): Int32Array {
  const tensor = tensors.get(table.name)
  const sorted = table.of === 'sort'
  const what = sorted ? 'a permutation' : 'coordinates'
  if (!tensor)
    return fail({
      code: 'bind/missing-table',
      message: `the parts of ${t.name} are ready-made, and the ${sorted ? 'order' : 'list'} that goes with them, ${table.name}, is not bound`,
      expected: `a dense i32 tensor: ${what}`,
      hint: `bind ${table.name}`,
    })
  const values = tensor.values
  if (tensor.kind !== 'dense' || !(values instanceof Int32Array))
    return fail({
      code: 'bind/table',
      message: `the table ${table.name} is bound to a ${tensor.kind} tensor of type ${tensor.dtype}`,
      expected: `a dense i32 tensor: ${what}`,
      hint: `bind dense([n], Int32Array.of(…), 'i32')`,
    })
  return sorted ? checkPermutation(table, values, known.params) : values
}
