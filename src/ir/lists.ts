/** List updates that preserve identity, and the difference of two lists. */

/** The list with `f` applied to each element; the same list if no element changes. */
export function mapSame<T>(xs: readonly T[], f: (x: T, k: number) => T): readonly T[] {
  let out: T[] | undefined
  xs.forEach((x, k) => {
    const y = f(x, k)
    if (y !== x && !out) out = xs.slice(0, k)
    out?.push(y)
  })
  return out ? Object.freeze(out) : xs
}

/** `out`, or the original list if every element is unchanged. */
export const reuseIfSame = <T>(xs: readonly T[], out: readonly T[]): readonly T[] =>
  out.length === xs.length && out.every((x, k) => x === xs[k]) ? xs : Object.freeze(out)

/** The list with one element replaced by several. V8 copies frozen lists faster by spreading than by `slice`. */
export function replaceAt<T>(xs: readonly T[], index: number, replacements: readonly T[]): readonly T[] {
  const out = [...xs]
  out.splice(index, 1, ...replacements)
  return Object.freeze(out)
}

/** The elements in which two lists differ, after the common prefix and suffix are removed. */
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
