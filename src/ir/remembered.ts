/**
 * Memoisation by identity: programs are immutable, and passes query unchanged parts repeatedly. Nodes store results in
 * a private field; copies begin without it, and frozen nodes can still update it. Other objects use a `WeakMap`, which
 * is 5 times slower to read and 10 to 30 times slower to write.
 */

/** A constructor that returns its argument, so that a derived class can add private fields to an existing object. */
const itself = function (this: unknown, object: object): object {
  return object
} as unknown as new (
  object: object,
) => object

class Place extends itself {
  /** Alternating memoised functions and their results. */
  #known: unknown[] | undefined

  static make<T extends object>(object: T): T {
    if (!(#known in object) && Object.isExtensible(object)) new Place(object)
    return object
  }

  static of(object: object): unknown[] | undefined {
    if (!(#known in object)) return undefined
    object.#known ??= []
    return object.#known
  }
}

/** Adds the private field for memoised results to a node that is not frozen yet; returns the node. */
export const remembering = <T extends object>(node: T): T => Place.make(node)

/** `f`, evaluated once for each object; results live as long as the object. */
export function remembered<K extends object, V extends NonNullable<unknown>>(
  f: (key: K) => V,
): (key: K) => V {
  const others = new WeakMap<K, V>()
  return (key) => {
    const known = Place.of(key)
    if (!known) {
      const before = others.get(key)
      if (before !== undefined) return before
      const found = f(key)
      others.set(key, found)
      return found
    }
    for (let k = 0; k < known.length; k += 2) if (known[k] === f) return known[k + 1] as V
    const found = f(key)
    known.push(f, found)
    return found
  }
}
