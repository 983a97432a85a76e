/** Entries on the host, and what queries are asked of. */

import { runSync } from '../../src/ast/work.ts'
import { Frame } from '../../src/columns/column-engine.ts'
import type { Scope } from '../../src/columns/engine-operands.ts'
import type { MapTable } from '../../src/columns/expression-program.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { type Expr, int } from '../../src/ir/expressions/expr.ts'
import type { TypedArray } from '../../src/ir/values/arrays.ts'
import { setTrees } from '../../src/storage/build-storage.ts'
import { loadEntries } from '../../src/storage/convert.ts'
import { HOST } from '../../src/storage/engines/host/engine.ts'
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
  tensor: CoordTensor,
  given: FormatOperands,
): { readonly frame: Frame<TypedArray>; readonly scope: Scope<TypedArray> } {
  const dims = names.map((name, k) => ({ name, extent: tensor.shape[k]! }))
  const over = dims.map(
    (d): StoredAxis => ({ kind: 'dense_fixed', name: d.name, parent: null, extent: int(d.extent) }),
  )
  const sets = [...given.sets.keys()].map((name) => ({ name, kind: 'set' as const }))
  const options = { given, fill: 0, sets: setTrees(given, { over, given: sets }, tensor.shape) }
  const { frame, context } = runSync(loadEntries<TypedArray>(HOST, tensor, dims, true, options))
  return { frame, scope: { ...context, places: new Map() } }
}
