/** "Did you mean": known names close to an unknown one. */

/** "`a`, `b` or `c`". */
export function orList(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

/** Most names that are listed. */
const MAX_LISTED = 10

/**
 * A name close to an unknown one, otherwise the candidates if they are few. `onlyAdvice`: the diagnostic has no other
 * advice, so some of many candidates are listed, or `none`.
 */
export function suggestion(
  { name, candidates }: { readonly name: string; readonly candidates: readonly string[] },
  onlyAdvice: boolean,
): { readonly title: string; readonly text: string } | undefined {
  const best = nearest(name, candidates).slice(0, 3)
  if (best.length > 0) return { title: 'did you mean', text: `${orList(best.map((c) => `\`${c}\``))}?` }
  const unique = [...new Set(candidates)].filter((c) => c !== name)
  if (!onlyAdvice && (unique.length === 0 || unique.length > MAX_LISTED)) return undefined
  const otherCount = unique.length > MAX_LISTED ? ` and ${unique.length - MAX_LISTED} more` : ''
  const listed = unique.slice(0, MAX_LISTED).map((c) => `\`${c}\``)
  return { title: 'known', text: listed.length === 0 ? 'none' : `${listed.join(', ')}${otherCount}` }
}

/** Least length of a name that is matched as a part of a candidate, before misspellings are considered. */
const MIN_PART_LENGTH = 3

/** The candidates at the least distance from `name`, if they are close enough to be a likely correction. */
export function nearest(name: string, candidates: readonly string[]): readonly string[] {
  const limit = Math.max(1, Math.floor(name.length / 3))
  const close = [...new Set(candidates)]
    .filter((c) => c !== name)
    .map((c) => ({ c, d: nameDistance(name, c, limit) }))
    .filter(({ d }) => d <= limit)
  const best = Math.min(...close.map(({ d }) => d))
  return close
    .filter(({ d }) => d === best)
    .map(({ c }) => c)
    .sort()
}

function nameDistance(name: string, candidate: string, limit: number): number {
  if (candidate.toLowerCase() === name.toLowerCase()) return 0
  if (name.length >= MIN_PART_LENGTH && candidate.includes(name)) return 1 - name.length / candidate.length
  return distance(name, candidate, limit)
}

/** Edit distance (insert, delete, replace, swap of neighbours) from `a` to `b`; exact only up to `limit`. */
export function distance(a: string, b: string, limit = Number.POSITIVE_INFINITY): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1
  let previous: number[] = []
  let current = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let d = Math.min(current[j]! + 1, row[j - 1]! + 1, current[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        d = Math.min(d, previous[j - 2]! + 1)
      row.push(d)
    }
    if (Math.min(...row) > limit) return limit + 1
    previous = current
    current = row
  }
  return current[b.length]!
}
