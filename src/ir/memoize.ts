/**
 * Memoisation by identity: programs are immutable, and passes query unchanged parts repeatedly. Nodes store results in
 * a private field; copies begin without it, and frozen nodes can still update it. Other objects use a `WeakMap`, which
 * is 5 times slower to read and 10 to 30 times slower to write.
 */

/** A constructor that returns its argument, so that a derived class can add private fields to an existing object. */
const ReturnArgument = function (this: unknown, object: object): object {
  return object
} as unknown as new (
  object: object,
) => object

class MemoField extends ReturnArgument {
  /** Alternating memoised functions and their results. */
  #known: unknown[] | undefined

  static make<T extends object>(object: T): T {
    if (!(#known in object) && Object.isExtensible(object)) new MemoField(object)
    return object
  }

  static of(object: object): unknown[] | undefined {
    if (!(#known in object)) return undefined
    object.#known ??= []
    return object.#known
  }
}

/** Adds the private field for memoised results to a node that is not frozen yet; returns the node. */
export const enableMemo = <T extends object>(node: T): T => MemoField.make(node)

/** `f`, evaluated once for each object; results live as long as the object. */
export function memoize<K extends object, V extends NonNullable<unknown>>(f: (key: K) => V): (key: K) => V {
  const fallback = new WeakMap<K, V>()
  return (key) => {
    const entries = MemoField.of(key)
    if (!entries) return getOrAdd(fallback, key, () => f(key))
    for (let k = 0; k < entries.length; k += 2) if (entries[k] === f) return entries[k + 1] as V
    const result = f(key)
    entries.push(f, result)
    return result
  }
}

/** The value of a key; made and added on first use. */
export function getOrAdd<K, V extends NonNullable<unknown> | null>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

/** As `getOrAdd`, for promises. Failures are not kept, because a later attempt may succeed. */
export const getOrAddPromise = <K, V>(
  map: {
    get(key: K): Promise<V> | undefined
    set(key: K, value: Promise<V>): unknown
    delete(key: K): unknown
  },
  key: K,
  make: () => Promise<V>,
): Promise<V> =>
  getOrAdd(map, key, () => {
    const pending = make()
    pending.catch(() => map.delete(key))
    return pending
  })

/** Items by key, in the order of their first occurrence. */
export function groupBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) getOrAdd(groups, keyOf(item), () => []).push(item)
  return groups
}
