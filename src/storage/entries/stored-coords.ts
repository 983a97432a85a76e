/** Stored values or dense arrays to coordinates, on the host. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { runSync } from '../../ast/work.ts'
import { allocate, ascending, gather, withScratchPool } from '../../columns/allocate.ts'
import { Frame } from '../../columns/column-engine.ts'
import type { Level } from '../../columns/stored-level.ts'
import { variable } from '../../ir/expressions/expr.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { HOST } from '../engines/host/engine.ts'
import { newValues as computed } from '../engines/host/map-reduce.ts'
import { type Storage, shapeOf } from '../storage.ts'
import type { CoordTensor, DenseTensor, ValueArray } from '../tensor.ts'
import { checkArrayClass, checkValueArray, decoder, gatherValues, newValues } from '../tensor.ts'
import { coordinatesOnLevels, entriesOf } from './entry-enumeration.ts'

/** For each tree, 1 at its non-empty positions; `null`: all positions except padding are non-empty. */
export type Occupancy = readonly (Uint8Array | null)[]

/** Non-empty positions of some trees (without padding), with their coordinates. */
export interface Expanded {
  readonly positions: Int32Array
  /** One array per axis. */
  readonly coords: readonly Int32Array[]
}

/**
 * The elements of a buffer with their coordinates, one dimension per axis, in position order. Padding, and
 * positions that are empty by `occupancy`, are omitted. The inverse of `buildStorage` with `scatterValues`.
 * @throws SptError `bind/values-length`, `bind/value-type`, `bind/too-large`
 */
export function toCoords(
  storage: Storage,
  values: ValueArray,
  dtype: Dtype,
  occupancy: Occupancy = [],
): CoordTensor {
  checkArrayClass(values, dtype)
  if (values.length !== storage.size)
    failWith(
      'bind/values-length',
      `${values.length} values for ${storage.size} positions over [${storage.axes.map((a) => a.name).join(', ')}]`,
      { expected: `${storage.size} values`, hint: 'padding and absent elements of blocks have values too' },
    )
  const names = storage.axes.map((a) => a.name)
  const { positions, coords } = selectOccupied(storage, occupancy, expand(storage.trees, names))
  const shape = shapeOf(storage)
  return { kind: 'coords', shape, coords, values: gatherValues({ values, dtype }, positions), dtype }
}

/** The elements whose position on every tree is non-empty. */
function selectOccupied({ trees }: Storage, occupancy: Occupancy, { positions, coords }: Expanded): Expanded {
  let treeStride = 1
  let selected: Int32Array | null = null
  for (let t = trees.length - 1; t >= 0; t--) {
    const size = trees[t]!.at(-1)!.positions
    const [occupied, stride] = [occupancy[t], treeStride]
    if (occupied) {
      const candidates: Int32Array = selected ?? ascending(positions.length, 'elements')
      selected = candidates.filter((e) => occupied[Math.floor(positions[e]! / stride) % size] === 1)
    }
    treeStride *= size
  }
  const chosen = selected
  return chosen
    ? { positions: gather(positions, chosen), coords: coords.map((c) => gather(c, chosen)) }
    : { positions, coords }
}

/** The non-empty positions of a chain of levels, a tree or a prefix of one. */
export const expandTree = (tree: readonly Level[]): Expanded =>
  expand(
    [tree],
    tree.map((l) => l.axis.name),
  )

function expand(trees: Storage['trees'], axes: readonly string[]): Expanded {
  const size = trees.reduce((n, tree) => n * tree.at(-1)!.positions, 1)
  const levels = new Map(trees.flat().map((l) => [l.axis.name, l]))
  return withScratchPool(() => {
    const stored = { trees, size, values: null, dtype: 'f32' as const, drop: null }
    const dims = axes.map((name) => ({ name, extent: levels.get(name)!.extent }))
    const exprs = axes.map((name) => variable(name))
    const none = new Map<string, never>()
    const frame = runSync(entriesOf<TypedArray>(HOST, stored, { dims, exprs, sizes: none, tables: none }))
    const coords = takeColumns(frame, axes, trees.flat())
    const entry = frame.entry as Int32Array | null
    return { positions: entry ?? ascending(frame.n, 'positions'), coords }
  })
}

/** The coordinates at some positions of a storage: an array for each axis. */
export const coordinatesAt = (
  { axes, trees, size }: Pick<Storage, 'axes' | 'trees' | 'size'>,
  positions: Int32Array,
): readonly Int32Array[] =>
  withScratchPool(() => {
    const frame = new Frame<TypedArray>(HOST, positions.length, new Map())
    frame.set('@position', positions, false)
    const { coordinates } = coordinatesOnLevels<TypedArray>(frame, { trees, size }, variable('@position'))
    return axes.map((a) => computed(frame, coordinates.get(a.name)!))
  })

/** Takes ownership of a frame's columns; those shared with levels are copied. */
export function takeColumns(
  frame: Frame<TypedArray>,
  names: readonly string[],
  levels: readonly Pick<Level, 'indices'>[],
): Int32Array[] {
  const levelArrays = new Set<TypedArray | null>(levels.map((l) => l.indices))
  return names.map((name) => {
    const c = frame.column(name) as Int32Array
    frame.keep(c)
    return levelArrays.has(c) ? c.slice() : c
  })
}

/**
 * The elements of a dense tensor that differ from `fill`, in row-major order; NaN equals NaN. @throws SptError
 * `bind/values-length`, `bind/value-type`, `bind/too-large`
 */
export function coordsOfDense(tensor: DenseTensor, fill = 0): CoordTensor {
  const { shape, values, dtype } = tensor
  checkValueArray(values, dtype)
  const size = shape.reduce((a, b) => a * b, 1)
  if (values.length !== size)
    failWith(
      'bind/values-length',
      `${values.length} values for a dense tensor of shape [${shape.join(', ')}]`,
      { expected: `${size} values`, hint: 'give the values in row-major order' },
    )
  const elements = differing(values, dtype, fill)
  const coords = shape.map(() => allocate(elements.length, 'coordinates'))
  const out = newValues(dtype, elements.length)
  for (let k = 0; k < elements.length; k++) {
    let remainder = elements[k]!
    out[k] = values[remainder]!
    for (let d = shape.length - 1; d >= 0; d--) {
      const n = shape[d]!
      coords[d]![k] = remainder % n
      remainder = Math.floor(remainder / n)
    }
  }
  return { kind: 'coords', shape, coords, values: out, dtype }
}

export function differing(values: ValueArray, dtype: Dtype, fill: number): Int32Array {
  const read = decoder(dtype)
  const out = allocate(values.length, 'stored elements')
  let n = 0
  for (let k = 0; k < values.length; k++)
    if (!isFill(read ? read(values[k]!) : values[k]!, fill)) out[n++] = k
  return out.subarray(0, n)
}

/** True if a number equals the fill value: both zeros are 0, and NaN equals NaN. */
export const isFill = (x: number, fill: number): boolean =>
  x === fill || (Number.isNaN(x) && Number.isNaN(fill))
