/** Entries on the host, and what queries are asked of. */

import type { MapTable } from '../../src/columns/expression-program.ts'
import type { TypedArray } from '../../src/ir/arrays.ts'
import type { StoredAxis } from '../../src/ir/axis.ts'
import { type Expr, int } from '../../src/ir/expr.ts'
import { Frame, type Scope } from '../../src/storage/column-engine.ts'
import { bindLists, listColumns, setColumns } from '../../src/storage/convert.ts'
import { runSync } from '../../src/storage/coroutines.ts'
import { HOST } from '../../src/storage/engines/host/engine.ts'
import { setTrees } from '../../src/storage/engines/host/set-trees.ts'
import type { FormatOperands } from '../../src/storage/format-operands.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'

/** Values of expressions over columns, as the host's engine computes them. */
export function mapped(
  map: readonly Expr[],
  columns: Readonly<Record<string, Int32Array>>,
  sizes: ReadonlyMap<string, number> = new Map(),
  tables: ReadonlyMap<string, MapTable> = new Map(),
): Int32Array[] {
  const frame = new Frame<TypedArray>(HOST, Object.values(columns)[0]?.length ?? 0, sizes)
  for (const [name, column] of Object.entries(columns)) frame.set(name, column, false)
  for (const [name, { values, fill }] of tables) {
    frame.tables.set(name, values)
    frame.fills.set(name, fill)
  }
  return map.map((e, k) => {
    HOST.compute(frame, `result ${k}`, e)
    return frame.column(`result ${k}`) as Int32Array
  })
}

export function hostScope(
  names: readonly string[],
  { shape, coords, values, dtype }: CoordTensor,
  given: FormatOperands,
): { readonly frame: Frame<TypedArray>; readonly scope: Scope<TypedArray> } {
  const frame = new Frame<TypedArray>(HOST, coords[0]!.length, given.sizes)
  const dims = names.map((name, k) => ({ name, extent: shape[k]! }))
  for (const [k, d] of dims.entries()) {
    frame.set(d.name, coords[k]!, false)
    frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
  }
  const lists = runSync(listColumns(HOST, given))
  bindLists(frame, lists, given)
  const distinct = HOST.ascends(frame, dims)
  const over = dims.map(
    (d): StoredAxis => ({ kind: 'dense_fixed', name: d.name, parent: null, extent: int(d.extent) }),
  )
  return {
    frame,
    scope: {
      dims,
      values: values && runSync(HOST.sumsOfEqual(frame, values, dtype, dims, distinct)).sums,
      distinct,
      places: new Map(),
      lists,
      sets: runSync(setColumns(HOST, setTrees(given, over, shape))),
    },
  }
}
