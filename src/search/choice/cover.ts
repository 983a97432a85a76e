/** Selection of a few candidates that suit all data together. */

/**
 * Candidates with a small loss if each case takes the best of them: added greedily, then exchanged one by one while the loss falls.
 * `losses`: for each candidate and case.
 */
export function cover(losses: readonly Float64Array[], most: number): readonly number[] {
  const cases = losses[0]?.length ?? 0
  const bestOf = (candidates: readonly number[]): Float64Array =>
    Float64Array.from({ length: cases }, (_, c) => Math.min(...candidates.map((k) => losses[k]![c]!)))
  const sumWith = (least: Float64Array, k: number): number =>
    least.reduce((n, l, c) => n + Math.min(l, losses[k]![c]!), 0)
  const next = (candidates: readonly number[]): { readonly k: number; readonly loss: number } => {
    const least = bestOf(candidates)
    const sums = losses.map((_, k) => sumWith(least, k))
    const loss = Math.min(...sums)
    return { k: sums.indexOf(loss), loss }
  }
  let found: number[] = []
  let best = Number.POSITIVE_INFINITY
  while (found.length < most) {
    const { k, loss } = next(found)
    if (!(loss < best)) break
    found.push(k)
    best = loss
  }
  for (let at = 0, kept = 0; kept < found.length; at = (at + 1) % found.length) {
    const others = found.filter((_, k) => k !== at)
    const { k, loss } = next(others)
    // Differences within rounding errors are not gains.
    if (loss < best - 1e-9) {
      found = found.map((c, n) => (n === at ? k : c))
      best = loss
      kept = 0
    } else kept++
  }
  return found
}
