/** From sources in the caller's coordinates to the storage of every buffer. */
import { fail } from '../ast/diagnostic.ts'
import { buildStorage } from '../formats/build.ts'
import { applyMap } from '../formats/coordmap.ts'
import { type Level, makeStorage, type Storage, treesOf } from '../formats/storage.ts'
import type { Tensor } from '../formats/tensor.ts'
import { validateStored } from '../formats/validate.ts'
import { isStored, type StoredAxis } from '../ir/axis.ts'
import { evaluate } from '../ir/evaluate.ts'
import { freeVars } from '../ir/expr.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { allAxesOf, isStructured, leafChains, storedAxis } from './axes.ts'
import { concat } from './sources.ts'
import type { Source } from './types.ts'

/** A source's columns on the axes that are stored, through all coordinate maps that apply to it. */
export function mapped(
  kernel: Kernel1,
  source: Source,
  params: ReadonlyMap<string, number>,
  extents: ReadonlyMap<string, number>,
): ReadonlyMap<string, Int32Array> {
  let columns = new Map(source.axes.map((a, k) => [a, source.columns[k]!]))
  for (const r of kernel.reformats) {
    const inputs = r.from.map((a) => a.name)
    if (!inputs.every((a) => columns.has(a))) continue
    const { order, map } = r.instance.parts[0]!.instance
    const outputs = order.map((name) => ({ name, extent: extents.get(name) ?? 2 ** 31 - 1 }))
    const results = applyMap(
      { map, inputs, sizes: params, outputs },
      inputs.map((a) => columns.get(a)!),
    )
    columns = new Map([...columns].filter(([a]) => !inputs.includes(a)))
    for (const [k, name] of order.entries()) columns.set(name, results[k]!)
  }
  return columns
}

export interface Structure {
  readonly storages: ReadonlyMap<string, Storage>
  readonly levels: ReadonlyMap<string, Level>
  /** Columns of each source on stored axes. */
  readonly columns: ReadonlyMap<Source, ReadonlyMap<string, Int32Array>>
}

const sameArray = (x: Int32Array | null, y: Int32Array | null): boolean =>
  x === y || (x !== null && y !== null && x.length === y.length && x.every((v, k) => v === y[k]))

const sameLevel = (x: Level, y: Level): boolean =>
  x.positions === y.positions && sameArray(x.indptr, y.indptr) && sameArray(x.indices, y.indices)

const isRepeating = (a: StoredAxis): boolean => 'unique' in a && !a.unique

/** Builds the levels of all axes and the storage of all buffers. `ready` tensors are used as they are. */
export function buildStructure(
  kernel: Kernel1,
  sources: readonly Source[],
  ready: ReadonlyMap<string, Tensor>,
  params: ReadonlyMap<string, number>,
  extents: ReadonlyMap<string, number>,
): Structure {
  const axes = allAxesOf(kernel)
  const levels = new Map<string, Level>()
  const storages = new Map<string, Storage>()
  const widths = new Map<string, number>()
  for (const a of kernel.axes)
    if (a.kind === 'sparse_fixed' && [...freeVars(a.width)].every((v) => params.has(v)))
      widths.set(a.name, evaluate(a.width, params))
  const adopt = (storage: Storage, names: readonly string[]): void => {
    for (const name of names) {
      const level = storage.levels.get(name)
      if (!level) continue
      const known = levels.get(name)
      if (known && !sameLevel(known, level))
        fail({
          code: 'bind/structure-differs',
          message: `two tensors give axis ${name} different structure (${known.positions} and ${level.positions} positions)`,
          expected: 'one structure for each axis',
          hint: 'declare an axis of its own for the second tensor',
        })
      if (!known) levels.set(name, level)
    }
  }
  for (const [name, tensor] of ready) {
    if (tensor.kind !== 'stored') continue
    const buffer = kernel.buffers.find((b) => b.name === name)!
    const storage = validateStored(
      buffer.axes.map((a) => storedAxis(axes, a)),
      extents,
      tensor,
      { widths },
    )
    storages.set(name, storage)
    adopt(storage, buffer.axes)
  }
  const columns = new Map(sources.map((s) => [s, mapped(kernel, s, params, extents)] as const))
  const build = (over: readonly string[], coords: readonly Int32Array[]): Storage =>
    buildStorage({
      axes: over.map((a) => storedAxis(axes, a)),
      extents,
      coords,
      widths,
      known: new Map([...levels].filter(([, l]) => !isRepeating(l.axis))),
    })
  /** Axes that several chains or shorter tensors share hold what all of them need. */
  const shared = (chain: readonly string[]): void => {
    chain.forEach((a, depth) => {
      const prefix = chain.slice(0, depth + 1)
      if (levels.has(a) || !isStructured(axes, a) || prefix.length === chain.length) return
      const from = sources.filter((s) => prefix.every((x) => columns.get(s)!.has(x)))
      if (from.every((s) => chain.every((x) => columns.get(s)!.has(x)))) return
      if (prefix.some((x) => isRepeating(storedAxis(axes, x)))) return
      const union = prefix.map((x) => concat(from.map((s) => columns.get(s)!.get(x)!)))
      adopt(build(prefix, union), prefix)
    })
  }
  const chains = leafChains(kernel.axes.filter(isStored))
  for (const chain of chains) shared(chain)
  for (const chain of chains) {
    if (chain.every((a) => levels.has(a))) continue
    const from = sources.filter((s) => chain.every((a) => columns.get(s)!.has(a)))
    const only = from.length === 1 ? from[0]! : undefined
    const buffer = only && kernel.buffers.find((b) => b.name === only.name)
    if (only && buffer?.axes.every((a) => columns.get(only)!.has(a))) {
      const storage = build(
        buffer.axes,
        buffer.axes.map((a) => columns.get(only)!.get(a)!),
      )
      if (buffer.axes.every((a) => !levels.has(a) || storedAxis(axes, a).kind === 'dense_fixed'))
        storages.set(buffer.name, storage)
      adopt(storage, buffer.axes)
    } else if (from.length > 0)
      adopt(
        build(
          chain,
          chain.map((a) => concat(from.map((s) => columns.get(s)!.get(a)!))),
        ),
        chain,
      )
    else if (chain.some((a) => storedAxis(axes, a).kind !== 'dense_fixed'))
      adopt(
        build(
          chain,
          chain.map(() => new Int32Array(0)),
        ),
        chain,
      )
    else adopt(build(chain, [new Int32Array(0)]), chain)
  }
  for (const b of kernel.buffers) {
    if (storages.has(b.name)) continue
    const over = b.axes.map((a) => storedAxis(axes, a))
    storages.set(
      b.name,
      makeStorage(over, treesOf(over), new Map(b.axes.map((a) => [a, levels.get(a)!])), null),
    )
  }
  return { storages, levels, columns }
}
