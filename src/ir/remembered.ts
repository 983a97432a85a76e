/**
 * Memoisation by identity: programs are immutable, and passes and steps ask the same of what they leave alone. Nodes have a
 * place for the answers, a private field that nothing else sees: copies begin without it, and freezing leaves it open. Of
 * what has none, a `WeakMap` keeps them, which takes 5 times as long to read and 10 to 30 to write.
 */

/** `new` on it gives the object itself, to which a derived class adds its private fields. */
const itself = function (this: unknown, object: object): object {
  return object
} as unknown as new (
  object: object,
) => object

class Place extends itself {
  /** Functions, each followed by what it said. */
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

/** Gives a node that is not frozen yet a place for what is remembered of it; the same node. */
export const remembering = <T extends object>(node: T): T => Place.make(node)

/** `f`, called once for each object; what it says is kept as long as the object is. */
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
