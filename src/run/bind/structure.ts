/** From coordinates on stored axes to the storage of every buffer. */
import { fail } from '../../ast/diagnostic.ts'
import { isNonunique, isStored } from '../../ir/axis.ts'
import { evaluate } from '../../ir/evaluate.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Buffer1, Kernel1 } from '../../ir/stage1.ts'
import { buildStorage, paddingsOf } from '../../storage/build-storage.ts'
import { validateStored } from '../../storage/ready/validate.ts'
import { type Entry, positionsOf, scatterValues } from '../../storage/scatter-values.ts'
import { type Level, makeStorage, type Storage, treesOf } from '../../storage/storage.ts'
import type { Tensor, ValueArray } from '../../storage/tensor.ts'
import { allAxesOf, isStructured, leafChains, storedAxis } from './axes.ts'
import { elementOf } from './dense-order.ts'
import { checkApart, keepsApart } from './duplicates.ts'
import { apartFrom, concat } from './split-entries.ts'
import type { Piece } from './types.ts'
import { type Union, united } from './union.ts'

export interface Structure {
  readonly storages: ReadonlyMap<string, Storage>
  readonly levels: ReadonlyMap<string, Level>
  /** Position of each entry of a piece in a buffer over its axes; `null`: entry e has position e. Found once. */
  readonly positions: (piece: Piece, buffer: string) => Int32Array | null
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
  const paddings = paddingsOf(kernel.axes.filter(isStored), params)
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
      { widths, paddings },
    )
    storages.set(name, storage)
    adopt(storage, buffer.axes)
  }
  // Equal coordinates add up, unless the kernel's text declares an axis on which they stay apart.
  const keeps = (p: Piece): boolean => keepsApart(p.source.axes.map((a) => storedAxis(axes, a)))
  /** Bound coordinates are checked, and maps keep to the extents. */
  const build = (
    over: readonly string[],
    coords: readonly Int32Array[],
    from: readonly Piece[],
    distinct = false,
  ): Storage =>
    buildStorage({
      ...(from.some(keeps) ? {} : { duplicates: 'share' as const }),
      axes: over.map((a) => storedAxis(axes, a)),
      extents,
      coords,
      widths,
      paddings,
      inRange: true,
      distinct,
      known: new Map([...levels].filter(([, l]) => !isNonunique(l.axis))),
    })
  /** Axes that several chains or shorter tensors share hold what all of them need. */
  const shared = (chain: readonly string[]): void => {
    chain.forEach((a, depth) => {
      const prefix = chain.slice(0, depth + 1)
      if (levels.has(a) || !isStructured(axes, a) || prefix.length === chain.length) return
      const from = pieces.filter((p) => prefix.every((x) => p.columns.has(x)))
      if (from.every((p) => chain.every((x) => p.columns.has(x)))) return
      if (prefix.some((x) => isNonunique(storedAxis(axes, x)))) return
      const union = prefix.map((x) => concat(from.map((p) => p.columns.get(x)!)))
      adopt(build(prefix, union, from), prefix)
    })
  }
  const chains = leafChains(kernel.axes.filter(isStored))
  for (const chain of chains) shared(chain)
  const times = new Map<string, number>()
  const found = new Map<Piece, Map<string, Int32Array | null>>()
  const remember = (
    over: readonly string[],
    members: readonly Piece[],
    first: ReadonlyMap<Piece, Piece>,
    from: readonly Piece[],
    union: Union,
    storage: Storage,
  ): void => {
    const positions = storage.entries!.positions
    const slices = new Map(members.map((p) => [p, union.positionsOf(p, positions)]))
    for (const p of from) {
      const own = found.get(p) ?? new Map<string, Int32Array | null>()
      found.set(p, own.set(over.join(), slices.get(first.get(p)!)!))
    }
  }
  for (const chain of chains) {
    if (chain.every((a) => levels.has(a))) continue
    const start = performance.now()
    const from = pieces.filter((p) => chain.every((a) => p.columns.has(a)))
    // A buffer that all of them are over tells where their entries go, unless others have a say in another tree of it that
    // is not built yet; one in which coordinates repeat is built once.
    const buffer =
      from.length > 0
        ? kernel.buffers.find(
            (b) =>
              chain.every((a) => b.axes.includes(a)) &&
              from.every((p) => b.axes.every((a) => p.columns.has(a))) &&
              b.axes.every(
                (a) =>
                  chain.includes(a) ||
                  storedAxis(axes, a).kind === 'dense_fixed' ||
                  (levels.has(a)
                    ? !isNonunique(storedAxis(axes, a))
                    : pieces.every((p) => from.includes(p) || !p.columns.has(a))),
              ),
          )
        : undefined
    if (buffer) {
      const { members, first } = apartFrom(from, buffer.axes)
      const union = united(members, buffer.axes, keeps)
      const [alone] = members.length === 1 ? members : []
      const distinct =
        alone !== undefined && alone.order !== 'unknown' && alone.columns.size === buffer.axes.length
      const storage = build(buffer.axes, union.columns, from, distinct)
      checkApart(axes, members, union, storage)
      if (buffer.axes.every((a) => !levels.has(a) || !isStructured(axes, a))) {
        storages.set(buffer.name, storage)
        remember(buffer.axes, members, first, from, union, storage)
      }
      adopt(storage, buffer.axes)
    } else {
      const dense = chain.every((a) => storedAxis(axes, a).kind === 'dense_fixed')
      const { members } = apartFrom(from, chain)
      const union = from.length > 0 && !dense ? united(members, chain, keeps) : undefined
      const storage = build(chain, union?.columns ?? chain.map(() => new Int32Array(0)), from)
      if (union) checkApart(axes, members, union, storage)
      adopt(storage, chain)
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
  const positions = (piece: Piece, buffer: string): Int32Array | null => {
    const storage = storages.get(buffer)!
    const over = storage.axes.map((a) => a.name)
    const own = found.get(piece) ?? new Map<string, Int32Array | null>()
    found.set(piece, own)
    const known = own.get(over.join())
    if (known !== undefined) return known
    const at = positionsOf(
      storage,
      over.map((a) => piece.columns.get(a)!),
    )
    own.set(over.join(), at)
    return at
  }
  return { storages, levels, times, positions }
}

/** The values of a buffer from those of the entries of a piece, whose positions are known. */
export function placedValues(
  storage: Storage,
  b: Buffer1,
  piece: Piece,
  positions: Int32Array | null,
  { values, dtype }: Pick<Entry, 'values' | 'dtype'>,
): ValueArray {
  const coords = b.axes.map((a) => piece.columns.get(a)!)
  const distinct = storage.entries?.positions === positions && storage.entries.distinct
  const own: Storage = { ...storage, entries: { coords, positions, distinct } }
  const place = (e: number): string => {
    const entry = piece.entries ? piece.entries[e]! : e
    return elementOf(
      piece.source.name,
      piece.source.columns.map((c) => c[entry]!),
    )
  }
  return scatterValues(own, { coords, values, dtype }, b.dtype, b.fill, undefined, undefined, place)
}
