/** Lists that keep their identity where nothing changes, and what of two lists differs. */

/** The list with `f` over each element; the same list when every element stays itself. */
export function mapSame<T>(xs: readonly T[], f: (x: T, k: number) => T): readonly T[] {
  let out: T[] | undefined
  xs.forEach((x, k) => {
    const y = f(x, k)
    if (y !== x && !out) out = xs.slice(0, k)
    out?.push(y)
  })
  return out ? Object.freeze(out) : xs
}

/** What stands in one of two lists alone, between what both begin and end with. */
export function differing<T>(before: readonly T[], after: readonly T[]): readonly [T[], T[]] {
  let [start, back] = [0, 0]
  if (before === after) return [[], []]
  const shorter = Math.min(before.length, after.length)
  while (start < shorter && before[start] === after[start]) start++
  while (back < shorter - start && before.at(-1 - back) === after.at(-1 - back)) back++
  return [before.slice(start, before.length - back), after.slice(start, after.length - back)]
}
