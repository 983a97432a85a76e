/** From coordinates on stored axes to the storage of every buffer. */
import { fail } from '../ast/diagnostic.ts'
import { buildStorage } from '../formats/build.ts'
import { type Level, makeStorage, type Storage, treesOf } from '../formats/storage.ts'
import type { Tensor } from '../formats/tensor.ts'
import { validateStored } from '../formats/validate.ts'
import { isStored, type StoredAxis } from '../ir/axis.ts'
import { evaluate } from '../ir/evaluate.ts'
import { freeVars } from '../ir/expr.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { allAxesOf, callerTensor, isStructured, leafChains, storedAxis } from './axes.ts'
import { concat, type Piece } from './pieces.ts'

export interface Structure {
  readonly storages: ReadonlyMap<string, Storage>
  readonly levels: ReadonlyMap<string, Level>
  /** Milliseconds spent on each chain of levels, by its last axis. */
  readonly times: ReadonlyMap<string, number>
}

const sameArray = (x: Int32Array | null, y: Int32Array | null): boolean =>
  x === y || (x !== null && y !== null && x.length === y.length && x.every((v, k) => v === y[k]))

const sameLevel = (x: Level, y: Level): boolean =>
  x.positions === y.positions &&
  sameArray(x.indptr, y.indptr) &&
  sameArray(x.indices, y.indices) &&
  sameArray(x.mask, y.mask)

const isRepeating = (a: StoredAxis): boolean => 'unique' in a && !a.unique

/** Builds the levels of all axes and the storage of all buffers. `ready` tensors are used as they are. */
export function buildStructure(
  kernel: Kernel1,
  pieces: readonly Piece[],
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
  // Equal coordinates add up, unless the kernel's text declares an axis on which they stay apart.
  const apart = (from: readonly Piece[]): boolean =>
    from.some((p) => p.source.axes.some((a) => isRepeating(storedAxis(axes, a))))
  const build = (over: readonly string[], coords: readonly Int32Array[], from: readonly Piece[]): Storage =>
    buildStorage({
      ...(apart(from) ? {} : { duplicates: 'share' as const }),
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
      const from = pieces.filter((p) => prefix.every((x) => p.columns.has(x)))
      if (from.every((p) => chain.every((x) => p.columns.has(x)))) return
      if (prefix.some((x) => isRepeating(storedAxis(axes, x)))) return
      const union = prefix.map((x) => concat(from.map((p) => p.columns.get(x)!)))
      adopt(build(prefix, union, from), prefix)
    })
  }
  const chains = leafChains(kernel.axes.filter(isStored))
  for (const chain of chains) shared(chain)
  const times = new Map<string, number>()
  for (const chain of chains) {
    if (chain.every((a) => levels.has(a))) continue
    const start = performance.now()
    const from = pieces.filter((p) => chain.every((a) => p.columns.has(a)))
    const only = from.length === 1 ? from[0]! : undefined
    // The buffer that this part of a tensor is stored in remembers where its entries went.
    const buffer =
      only &&
      callerTensor(kernel, only.source.name)?.buffers.find((b) => b.axes.every((a) => only.columns.has(a)))
    if (only && buffer) {
      const storage = build(
        buffer.axes,
        buffer.axes.map((a) => only.columns.get(a)!),
        from,
      )
      if (buffer.axes.every((a) => !levels.has(a) || !isStructured(axes, a)))
        storages.set(buffer.name, storage)
      adopt(storage, buffer.axes)
    } else {
      const dense = chain.every((a) => storedAxis(axes, a).kind === 'dense_fixed')
      const columns = chain.map((a) =>
        from.length > 0 && !dense ? concat(from.map((p) => p.columns.get(a)!)) : new Int32Array(0),
      )
      adopt(build(chain, columns, from), chain)
    }
    times.set(chain[chain.length - 1]!, performance.now() - start)
  }
  for (const b of kernel.buffers) {
    if (storages.has(b.name)) continue
    const over = b.axes.map((a) => storedAxis(axes, a))
    storages.set(
      b.name,
      makeStorage(over, treesOf(over), new Map(b.axes.map((a) => [a, levels.get(a)!])), null),
    )
  }
  return { storages, levels, times }
}
