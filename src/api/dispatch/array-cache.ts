/** Cache of facts about tensors, valid while the same arrays are bound. Computing them takes milliseconds. */
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import type { Tensor } from '../../storage/tensor.ts'

interface Entry<T> {
  readonly arrays: readonly object[]
  readonly shapes: string
  readonly found: T
}

/** Cached results by purpose (`what`) and arrays. */
export class ArrayCache<T> {
  readonly #known = new WeakMap<object, WeakMap<object, Entry<T>>>()

  /** Returns the cached result for the same arrays and shapes, or the new result of `find`. */
  of(what: object, tensors: readonly (readonly [string, Tensor])[], find: () => T): T {
    const arrays = tensors.flatMap(([, t]) => indexArrays(t))
    const shapes = JSON.stringify(tensors.map(([name, t]) => [name, t.shape]))
    const own = this.#known.get(what) ?? new WeakMap<object, Entry<T>>()
    this.#known.set(what, own)
    const [key] = arrays
    const before = key && own.get(key)
    if (
      before?.shapes === shapes &&
      before.arrays.length === arrays.length &&
      before.arrays.every((a, k) => a === arrays[k])
    )
      return before.found
    const found = find()
    if (key) own.set(key, { arrays, shapes, found })
    return found
  }
}

function indexArrays(t: Tensor): readonly object[] {
  if (t.kind === 'dense') return [t.values]
  if (t.kind === 'coords') return t.coords
  // Levels may have further fields, because matrices of other libraries are bound unchanged.
  return Object.values(t.arrays).flatMap((own) => LEVEL_ARRAYS.flatMap((a) => own[a] ?? []))
}
