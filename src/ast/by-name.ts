/** Records with user-defined names as keys. */

/** A record without a prototype, so that user-defined keys such as `__proto__` have no inherited values. */
export function byName<T>(entries: Iterable<readonly [string, T]> = []): Record<string, T> {
  const out: Record<string, T> = Object.create(null)
  for (const [name, x] of entries) out[name] = x
  return out
}
