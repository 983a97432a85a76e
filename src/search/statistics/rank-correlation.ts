/** Ranks of values from 0 on; equal values share the mean of theirs. */
function ranks(values: readonly number[]): readonly number[] {
  const order = [...values.keys()].sort((a, b) => values[a]! - values[b]!)
  const out = new Array<number>(values.length)
  for (let from = 0; from < order.length; ) {
    let to = from + 1
    while (to < order.length && values[order[to]!] === values[order[from]!]) to++
    for (const k of order.slice(from, to)) out[k] = (from + to - 1) / 2
    from = to
  }
  return out
}

/**
 * Spearman's rank correlation of two lists of equal length, in [−1, 1]: Pearson's correlation of their ranks. It is 0
 * if one list has only equal values.
 */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [ranks(a), ranks(b)]
  const middle = (a.length - 1) / 2
  let [cross, ofX, ofY] = [0, 0, 0]
  for (const [k, r] of x.entries()) {
    const [dx, dy] = [r - middle, y[k]! - middle]
    cross += dx * dy
    ofX += dx * dx
    ofY += dy * dy
  }
  return ofX === 0 || ofY === 0 ? 0 : cross / Math.sqrt(ofX * ofY)
}
