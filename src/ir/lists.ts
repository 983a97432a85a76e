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

/** What became of the list; the list itself where every element is still itself. */
export const unlessSame = <T>(xs: readonly T[], out: readonly T[]): readonly T[] =>
  out.length === xs.length && out.every((x, k) => x === xs[k]) ? xs : Object.freeze(out)

/** The list with others in the place of one element. Spread is what V8 copies frozen lists by; `slice` takes them one by one. */
export function replacedAt<T>(xs: readonly T[], at: number, by: readonly T[]): readonly T[] {
  const out = [...xs]
  out.splice(at, 1, ...by)
  return Object.freeze(out)
}

/** What stands in one of two lists alone, between what both begin and end with. */
export function differing<T>(before: readonly T[], after: readonly T[]): readonly [T[], T[]] {
  if (before === after) return [[], []]
  let start = 0
  let [end, last] = [before.length, after.length]
  while (start < end && start < last && before[start] === after[start]) start++
  while (end > start && last > start && before[end - 1] === after[last - 1]) {
    end--
    last--
  }
  return [before.slice(start, end), after.slice(start, last)]
}
