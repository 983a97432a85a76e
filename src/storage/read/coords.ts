/** Values in storage order, or dense arrays, back to coordinates. */
import { fail } from '../../ast/diagnostic.ts'
import { allocate, MAX_POSITIONS, tooLarge } from '../../columns/allocate.ts'
import type { Dtype } from '../../ir/dtype.ts'
import { restrict, type Storage } from '../storage.ts'
import type { CoordTensor, DenseTensor, ValueArray } from '../tensor.ts'
import { checkArrayClass, checkValueArray, decoder, newValues } from '../values.ts'
import { type Expanded, expandTree } from './expand.ts'

export interface ToCoordsOptions {
  /** The buffer's axes, where it is not over all of the storage's. */
  readonly axes?: readonly string[]
  /** Leave out elements of this value (the fill of blocks and dense levels); NaN matches NaN. */
  readonly drop?: number
}

/**
 * The elements of a buffer with their coordinates, one dimension for each axis, in position order. Padding is left
 * out. The inverse of `buildStorage` with `scatterValues`.
 * @throws SptError `bind/values-length`, `bind/value-type`, `bind/too-large`
 */
export function toCoords(
  storage: Storage,
  values: ValueArray,
  dtype: Dtype,
  options: ToCoordsOptions = {},
): CoordTensor {
  const part = options.axes ? restrict(storage, options.axes) : storage
  checkArrayClass(values, dtype)
  if (values.length !== part.size)
    fail({
      code: 'bind/values-length',
      message: `${values.length} values for ${part.size} positions over [${part.axes.map((a) => a.name).join(', ')}]`,
      expected: `${part.size} values`,
      hint: 'padding and absent elements of blocks have values too',
    })
  const trees = part.trees.map((tree) => expandTree(part, tree))
  const place = addresses(part, trees)
  const kept = options.drop === undefined ? null : keep(values, dtype, place.at, options.drop)
  const n = kept ? kept.length : place.at.length
  const out = newValues(dtype, n)
  for (let k = 0; k < n; k++) out[k] = values[place.at[kept ? kept[k]! : k]!]!
  const byAxis = new Map<string, Int32Array>()
  trees.forEach(({ coords: own }, t) => {
    // Over all combinations in row-major order, member k of tree t stands at every k·after, `size` apart.
    const after = place.after[t]!
    const size = trees[t]!.positions.length
    own.forEach((c, depth) => {
      const name = part.trees[t]![depth]!
      if (trees.length === 1 && !kept) {
        byAxis.set(name, c)
        return
      }
      const to = allocate(n, 'coordinates')
      if (trees.length === 1) for (let k = 0; k < n; k++) to[k] = c[kept![k]!]!
      else for (let k = 0; k < n; k++) to[k] = c[Math.floor((kept ? kept[k]! : k) / after) % size]!
      byAxis.set(name, to)
    })
  })
  return {
    kind: 'coords',
    shape: part.axes.map((a) => part.levels.get(a.name)!.extent),
    coords: part.axes.map((a) => byAxis.get(a.name)!),
    values: out,
    dtype,
  }
}

/** Addresses of all combinations of stored positions, and how many combinations each tree's step spans. */
function addresses(storage: Storage, trees: readonly Expanded[]) {
  const after: number[] = new Array(trees.length)
  let total = 1
  for (let t = trees.length - 1; t >= 0; t--) {
    after[t] = total
    total *= trees[t]!.positions.length
  }
  if (total > MAX_POSITIONS) tooLarge(total, 'stored elements')
  let at: Int32Array = new Int32Array(1)
  trees.forEach(({ positions }, t) => {
    const tree = storage.trees[t]!
    const size = storage.levels.get(tree[tree.length - 1]!)!.positions
    const next = allocate(at.length * positions.length, 'stored elements')
    let k = 0
    for (let a = 0; a < at.length; a++)
      for (let p = 0; p < positions.length; p++) next[k++] = at[a]! * size + positions[p]!
    at = next
  })
  return { at, after }
}

/** Places whose value is not `drop`; place k has the element `at[k]` (`null`: k itself). */
function keep(values: ValueArray, dtype: Dtype, at: Int32Array | null, drop: number): Int32Array {
  const read = decoder(dtype)
  const count = at ? at.length : values.length
  const out = allocate(count, 'stored elements')
  let n = 0
  for (let k = 0; k < count; k++) {
    const bits = values[at ? at[k]! : k]!
    const x = read ? read(bits) : bits
    if (x !== drop && !(Number.isNaN(x) && Number.isNaN(drop))) out[n++] = k
  }
  return out.subarray(0, n)
}

/**
 * The elements of a dense tensor that differ from `fill`, in row-major order.
 * @throws SptError `bind/values-length`, `bind/value-type`, `bind/too-large`
 */
export function coordsOfDense(tensor: DenseTensor, fill = 0): CoordTensor {
  const { shape, values, dtype } = tensor
  checkValueArray(values, dtype)
  const size = shape.reduce((a, b) => a * b, 1)
  if (values.length !== size)
    fail({
      code: 'bind/values-length',
      message: `${values.length} values for a dense tensor of shape [${shape.join(', ')}]`,
      expected: `${size} values`,
      hint: 'give the values in row-major order',
    })
  const kept = keep(values, dtype, null, fill)
  const coords = shape.map(() => allocate(kept.length, 'coordinates'))
  const out = newValues(dtype, kept.length)
  for (let k = 0; k < kept.length; k++) {
    let rest = kept[k]!
    out[k] = values[rest]!
    for (let d = shape.length - 1; d >= 0; d--) {
      const n = shape[d]!
      coords[d]![k] = rest % n
      rest = Math.floor(rest / n)
    }
  }
  return { kind: 'coords', shape, coords, values: out, dtype }
}
