/** Tables that come with ready-made parts. */
import { fail } from '../ast/diagnostic.ts'
import type { Tensor } from '../formats/tensor.ts'
import { evaluate } from '../ir/evaluate.ts'
import type { Table } from '../ir/format.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { CallerTensor } from './axes.ts'
import type { Known } from './pieces.ts'

/** Tables of the formats that a tensor was put into: sorts are brought with the parts, lists were given. */
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
          table.of === 'list' ? known.lists.get(table.source)! : permutation(t, table, tensors, known),
        )
    }
  return out
}

function permutation(
  t: CallerTensor,
  table: Table,
  tensors: ReadonlyMap<string, Tensor>,
  known: Known,
): Int32Array {
  const tensor = tensors.get(table.name)
  if (!tensor)
    return fail({
      code: 'bind/missing-table',
      message: `the parts of ${t.name} are ready-made, and the order that goes with them, ${table.name}, is not bound`,
      expected: `a dense i32 tensor: a permutation`,
      hint: `bind ${table.name}`,
    })
  const values = tensor.values
  if (tensor.kind !== 'dense' || !(values instanceof Int32Array))
    return fail({
      code: 'bind/table',
      message: `the table ${table.name} is bound to a ${tensor.kind} tensor of type ${tensor.dtype}`,
      expected: 'a dense i32 tensor: a permutation',
      hint: `bind dense([n], Int32Array.of(…), 'i32')`,
    })
  const n = Math.max(0, evaluate(table.fill, known.params))
  const length = Math.max(0, evaluate(table.length, known.params))
  const seen = new Uint8Array(n)
  for (let p = 0; p < values.length; p++) {
    const c = values[p]!
    // Places beyond the extent are padding.
    if (p >= n ? c === n : c >= 0 && c < n && seen[c] === 0) {
      if (c < n) seen[c] = 1
      continue
    }
    fail({
      code: 'bind/table',
      message: `place ${p} of ${table.name} is ${c}`,
      expected: p >= n ? `${n}, which is padding` : `each of 0 to ${n - 1} once`,
      hint: 'give the coordinate that stands at each place',
    })
  }
  if (values.length !== length)
    fail({
      code: 'bind/table',
      message: `${table.name} has ${values.length} places`,
      expected: `${length} places`,
      hint: 'give the coordinate that stands at each place, and the extent at the rest',
    })
  return values
}
