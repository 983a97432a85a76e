/** Masks by sorting everything, in plain numbers: nothing of src/prune. */
export interface Matrix {
  readonly rows: number
  readonly cols: number
  /** Importance of each element. */
  readonly e: readonly number[]
}
interface Ranked {
  readonly score: number
  readonly layer: number
  /** Places of its elements. */
  readonly at: readonly number[]
}
const range = (n: number, from = 0): number[] => Array.from({ length: n }, (_, k) => from + k)
const squares = (v: readonly number[]): number => v.reduce((s, x) => s + x * x, 0)
export type Norm = 'root' | 'length'
export const norm = (v: readonly number[], by: Norm): number =>
  by === 'root' ? Math.sqrt(squares(v) / v.length) : Math.sqrt(squares(v)) / v.length
export const target = (sparsity: number, n: number): number => Math.floor(sparsity * n + 1e-6)
const size = (of: readonly Matrix[]): number => of.reduce((s, m) => s + m.e.length, 0)

/** Prunes in `kept` what ranks lowest; `vectors` stand in the order of layers and positions. */
function pruneLowest(
  vectors: readonly Ranked[],
  kept: readonly number[][],
  most: number,
  limits: readonly number[],
) {
  const lost = (k: number): number => kept[k]!.filter((x) => x === 0).length
  let pruned = range(kept.length).reduce((s, k) => s + lost(k), 0)
  for (const { layer, at } of [...vectors].sort((a, b) => a.score - b.score)) {
    if (lost(layer) + at.length > target(limits[layer]!, kept[layer]!.length)) continue
    if (pruned + at.length > most) break
    pruned += at.length
    for (const i of at) kept[layer]![i] = 0
  }
}
const vectorsOf = (
  of: readonly Matrix[],
  groups: (m: Matrix, layer: number) => number[][],
  by: Norm = 'root',
): Ranked[] =>
  of.flatMap((m, layer) =>
    groups(m, layer).map((at) => ({
      score: norm(
        at.map((i) => m.e[i]!),
        by,
      ),
      layer,
      at,
    })),
  )
const ones = (of: readonly Matrix[]): number[][] => of.map((m) => m.e.map(() => 1))

export function ew(of: readonly Matrix[], sparsity: number, limits: readonly number[]): number[][] {
  const kept = ones(of)
  const single = (m: Matrix): number[][] => range(m.e.length).map((i) => [i])
  pruneLowest(vectorsOf(of, single), kept, target(sparsity, size(of)), limits)
  return kept
}

export function bw(
  of: readonly Matrix[],
  sparsity: number,
  limits: readonly number[],
  by: Norm,
  h: number,
  w: number,
) {
  const kept = ones(of)
  const blocks = ({ rows, cols }: Matrix): number[][] =>
    range(Math.ceil(rows / h)).flatMap((b) =>
      range(Math.ceil(cols / w)).map((a) =>
        range(Math.min(h, rows - b * h), b * h).flatMap((r) =>
          range(Math.min(w, cols - a * w), a * w).map((c) => r * cols + c),
        ),
      ),
    )
  pruneLowest(vectorsOf(of, blocks, by), kept, target(sparsity, size(of)), limits)
  return kept
}

/** Rows that keep something after the first pass, in groups: tiles of one layer, those that lose everything included. */
export function tw(
  of: readonly Matrix[],
  sparsity: number,
  limits: readonly number[],
  by: Norm,
  granularity: number,
  least = 1,
) {
  const kept = ones(of)
  const pass = (s: number): number => 1 - Math.sqrt(1 - s)
  const row = (m: Matrix): number[][] => range(m.rows).map((r) => range(m.cols).map((c) => r * m.cols + c))
  pruneLowest(vectorsOf(of, row, by), kept, target(pass(sparsity), size(of)), limits.map(pass))
  of.forEach((m, k) => {
    const pruned = row(m).filter(([i]) => kept[k]![i!] === 0)
    const last = (m.rows - pruned.length) % granularity
    if (last === 0 || last >= least) return
    const score = (at: readonly number[]): number =>
      norm(
        at.map((i) => m.e[i]!),
        by,
      )
    const ranked = pruned.sort((a, b) => score(a) - score(b))
    for (const i of ranked.slice(Math.max(0, ranked.length - (least - last))).flat()) kept[k]![i] = 1
  })
  const tiles = of.map((m, k) => {
    const rows = range(m.rows).filter((r) => kept[k]![r * m.cols] === 1)
    return range(Math.ceil(rows.length / granularity)).map((t) =>
      rows.slice(t * granularity, (t + 1) * granularity),
    )
  })
  const columns = (m: Matrix, k: number): number[][] =>
    tiles[k]!.flatMap((rows) => range(m.cols).map((c) => rows.map((r) => r * m.cols + c)))
  pruneLowest(vectorsOf(of, columns, by), kept, target(sparsity, size(of)), limits)
  return { kept, tiles }
}

export function tew(
  of: readonly Matrix[],
  sparsity: number,
  delta: number,
  limits: readonly number[],
  by: Norm,
  granularity: number,
) {
  const { kept } = tw(of, sparsity + delta, limits, by, granularity)
  const pruned = vectorsOf(of, (m, k) => range(m.e.length).flatMap((i) => (kept[k]![i] === 0 ? [[i]] : [])))
  const rest = of.map((m) => m.e.map(() => 0))
  for (const { layer, at } of [...pruned].sort((a, b) => a.score - b.score).slice(target(sparsity, size(of))))
    rest[layer]![at[0]!] = 1
  return { kept, rest }
}

/** Of places in one row: all but the best `n` are pruned. */
export function keepBest(m: Matrix, places: readonly number[], n: number, kept: number[]): void {
  const sorted = [...places].sort((a, b) => m.e[a]! - m.e[b]!)
  for (const i of sorted.slice(0, Math.max(0, places.length - n))) kept[i] = 0
}

/** Of a tile: two of each four for every output, then, for each input that has none, the exchange that costs the least. */
export function twoOfFour(
  m: Matrix,
  outputs: readonly number[],
  inputs: readonly number[],
  kept: number[],
): void {
  const at = (r: number, c: number): number => r * m.cols + c
  const groups =
    outputs.length === 1
      ? [inputs]
      : range(Math.ceil(inputs.length / 4)).map((k) => inputs.slice(4 * k, 4 * k + 4))
  for (const four of groups) {
    for (const r of outputs)
      keepBest(
        m,
        four.map((c) => at(r, c)),
        2,
        kept,
      )
    if (outputs.length === 1) continue
    const holders = (c: number): number => outputs.filter((r) => kept[at(r, c)] === 1).length
    for (const c of four.filter((x) => holders(x) === 0)) {
      const places = outputs.flatMap((r) =>
        four.flatMap((d) => (kept[at(r, d)] === 1 && holders(d) > 1 ? [[at(r, d), at(r, c)] as const] : [])),
      )
      const lost = ([a, b]: readonly [number, number]): number => (m.e[a] === m.e[b] ? 0 : m.e[a]! - m.e[b]!)
      const [a, b] = places.reduce((x, y) => (lost(y) < lost(x) ? y : x))
      kept[a] = 0
      kept[b] = 1
    }
  }
}
