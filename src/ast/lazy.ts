/** A function that computes its result in the first call. */
export function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** The value of a key in a cache, computed on first use. */
export function cached<K, V>(
  cache: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: (K & object) | K,
  compute: () => V,
): V {
  const known = cache.get(key)
  if (known !== undefined) return known
  const value = compute()
  cache.set(key, value)
  return value
}
