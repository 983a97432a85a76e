/** Records of what users name. */

/** Names are the user's: `__proto__` is one of them, and stands for nothing where it is not given. */
export function byName<T>(entries: Iterable<readonly [string, T]> = []): Record<string, T> {
  const out: Record<string, T> = Object.create(null)
  for (const [name, x] of entries) out[name] = x
  return out
}
