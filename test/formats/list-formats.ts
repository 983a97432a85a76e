/** Formats with lists, and tensors that they hold. */
import type { CoordTensor } from '../../src/storage/tensor.ts'

/** Groups of h rows share lists of s columns; a dense h × s tile of values for each. */
const panels = (inside: string): string => `
format tiles(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, s)
  ${inside}
  map (i, j) -> (i / h, rank(j by i / h) / s, j, MAP)
  inverse (io, go, INV) -> (io * h + ii, jo[ji])
}`
export const rowsFirst = panels('axis ii = dense_fixed(go, h)\n  axis ji = dense_fixed(ii, jo)')
  .replace('MAP', 'i % h, position(jo)')
  .replace('INV', 'ii, ji')
const columnsFirst = panels('axis ji = dense_fixed(go, jo)\n  axis ii = dense_fixed(ji, h)')
  .replace('MAP', 'position(jo), i % h')
  .replace('INV', 'ji, ii')
/** Panels whose rows hold some of the positions of their list. */
const someOf = panels('axis ii = dense_fixed(go, h)\n  axis ji = sparse_variable(ii, jo)')
  .replace('MAP', 'i % h, position(jo)')
  .replace('INV', 'ii, ji')
/** The last list of a group is filled up with its last column. */
const repeatedLists = rowsFirst.replace('sparse_fixed(go, j, s)', 'sparse_fixed(go, j, s) padded with last')
/** One list a group, of what stands in its rows; groups without elements are not stored. */
const stored = `
format tiles(h, s) over (i, j) {
  axis io = sparse_variable(ceildiv(i, h))
  axis go = sparse_variable(io, ceildiv(j, s))
  list jo = sparse_fixed(go, s, s)
  axis ii = dense_fixed(go, h)
  axis ji = dense_fixed(ii, jo)
  map (i, j) -> (i / h, j / s, j % s, i % h, position(jo))
  inverse (io, go, ii, ji) -> (io * h + ii, go * s + jo[ji])
}`
/** V:N:M: per h rows and s columns a list of the 4 columns that are kept, and of these 2 in each row. */
const vnm = `
format tiles(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_fixed(io, ceildiv(j, s))
  list jo = sparse_fixed(go, s, 4)
  axis ii = dense_fixed(go, h)
  axis q  = sparse_fixed(ii, jo, 2)
  map (i, j) -> (i / h, j / s, j % s, i % h, position(jo))
  inverse (io, go, ii, q) -> (io * h + ii, go * s + jo[q])
}`
/** Tiles of h columns with lists of s rows, and of those two in each column, stored (column, row). */
const tvw = `
format tiles(h, s) over (i, j) {
  axis to = dense_fixed(ceildiv(j, h))
  axis go = dense_variable(to, i)
  list ko = sparse_fixed(go, i, s)
  axis ji = dense_fixed(go, h)
  axis q  = sparse_fixed(ji, ko, 2)
  map (i, j) -> (j / h, rank(i by j / h) / s, i, j % h, position(ko))
  inverse (to, go, ji, q) -> (ko[q], to * h + ji)
}`
/** Positions 0 to 3, and 4 where a row keeps fewer than two. */
const packedVnm = vnm.replace('sparse_fixed(ii, jo, 2)', 'sparse_fixed(ii, jo, 2) packed 4')
const repeatedTvw = tvw.replace('sparse_fixed(go, i, s)', 'sparse_fixed(go, i, s) padded with last')
/** Rows that are stored keep their positions in the list, as wide as it is. */
const rowsOf = (more: string): string => `
format tiles(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, s)
  axis ii = sparse_variable(go, h) ${more}
  axis q  = sparse_fixed(ii, jo, s) padded with last
  map (i, j) -> (i / h, rank(j by i / h) / s, j, i % h, position(jo))
  inverse (io, go, ii, q) -> (io * h + ii, jo[q])
}`
/** Rows have a list as well, under the axis of the other or above it. */
const twoLists = (above: string): string => `
format tiles(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, s)
  list ro = sparse_fixed(${above}, h, h)
  axis ii = dense_fixed(go, ro)
  axis ji = dense_fixed(ii, jo)
  map (i, j) -> (i / h, rank(j by i / h) / s, j, i % h, position(ro), position(jo))
  inverse (io, go, ii, ji) -> (io * h + ro[ii], jo[ji])
}`
export const TEXTS = [
  ['panels', rowsFirst],
  ['panels by columns', columnsFirst],
  ['panels of some positions', someOf],
  ['blocks that are stored', stored],
  ['panels padded with last', repeatedLists],
  ['V:N:M', vnm],
  ['V:N:M in four bits', packedVnm],
  ['tile-vector-wise', tvw],
  ['tile-vector-wise padded with last', repeatedTvw],
  ['rows padded with last', rowsOf('')],
  ['pieces of rows padded with last', rowsOf('nonunique')],
  ['two lists under one axis', twoLists('go')],
  ['a list above the axis of another', twoLists('io')],
] as const
/** Each coordinate once, none of them 0, and of those that a format of a certain width holds: at most so many in a group. */
export function fitting(t: CoordTensor, text: string, h: number, s: number): CoordTensor {
  const once = new Map<string, readonly [number, number]>()
  for (const [e, i] of t.coords[0]!.entries()) once.set(`${i} ${t.coords[1]![e]}`, [i, t.coords[1]![e]!])
  let kept = [...once.values()].sort((a, b) => a[0] - b[0] || a[1] - b[1])
  const most = (n: number, group: (i: number, j: number) => string, of: (i: number, j: number) => number) => {
    const seen = new Map<string, Set<number>>()
    for (const [i, j] of kept) {
      const own = seen.get(group(i, j)) ?? new Set<number>()
      if (own.size < n) own.add(of(i, j))
      seen.set(group(i, j), own)
    }
    kept = kept.filter(([i, j]) => seen.get(group(i, j))!.has(of(i, j)))
  }
  const div = Math.floor
  if (text === vnm || text === packedVnm) {
    most(
      4,
      (i, j) => `${div(i / h)} ${div(j / s)}`,
      (_, j) => j,
    )
    most(
      2,
      (i, j) => `${i} ${div(j / s)}`,
      (_, j) => j,
    )
  }
  if (text === tvw || text === repeatedTvw)
    most(
      2,
      (_, j) => `${j}`,
      (i) => i,
    )
  return {
    kind: 'coords',
    shape: t.shape,
    coords: [Int32Array.from(kept, (c) => c[0]), Int32Array.from(kept, (c) => c[1])],
    values: Int32Array.from(kept, (_, k) => 1 + (k % 7)),
    dtype: 'i32',
  }
}

/** The same tensor from more entries: some coordinates are there two or three times, apart, and add up. */
export function repeated(t: CoordTensor): CoordTensor {
  const n = t.coords[0]!.length
  const again = [...Array(n).keys()].flatMap((e) => Array.from({ length: e % 3 }, () => e)).reverse()
  const from = [...Array(n).keys(), ...again]
  return {
    ...t,
    coords: t.coords.map((c) => Int32Array.from(from, (e) => c[e]!)),
    values: Int32Array.from(from, (e, k) => (k < n ? Number(t.values![e]) : 1 + (k % 5))),
  }
}
/** Each coordinate once, with the sum of its values. */
export function summed(t: CoordTensor): CoordTensor {
  const sums = new Map<string, number>()
  const keys = [...t.coords[0]!].map((i, e) => `${i} ${t.coords[1]![e]}`)
  for (const [e, key] of keys.entries()) sums.set(key, (sums.get(key) ?? 0) + Number(t.values![e]))
  const at = (d: number): Int32Array => Int32Array.from(sums.keys(), (key) => Number(key.split(' ')[d]))
  return { ...t, coords: [at(0), at(1)], values: Int32Array.from(sums.values()) }
}
