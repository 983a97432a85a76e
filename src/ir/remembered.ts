/** Memoisation by identity: programs are immutable, and passes and steps ask the same of what they leave alone. */

/** `f`, called once for each object; what it says is kept as long as the object is. */
export function remembered<K extends object, V extends NonNullable<unknown>>(
  f: (key: K) => V,
): (key: K) => V {
  const known = new WeakMap<K, V>()
  return (key) => {
    const before = known.get(key)
    if (before !== undefined) return before
    const found = f(key)
    known.set(key, found)
    return found
  }
}
