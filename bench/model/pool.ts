/**
 * Kernels under schedules with drawn arguments, from which the cost model learns what arguments do: wider than
 * `candidates.json`, which lists what is good. Every schedule has so many draws from its grid of arguments.
 */
import { Random, permutation as shuffled } from '../../src/run/bind/sources/random-tensors.ts'
import { type Candidate, fieldOf, parseCandidate, widthValues } from '../gpu/candidates.ts'

type Grid = Readonly<Record<string, readonly number[]>>

interface Draws {
  readonly schedule: string
  readonly grid: Grid
  readonly count: number
  /** Which arguments belong together. */
  readonly fits?: (a: Readonly<Record<string, number>>) => boolean
}

const LANES = { lanes: [8, 16, 32], each: [4] } as const
/** Threads of a block. */
const between = (threads: number): boolean => threads >= 64 && threads <= 512
const rowsOfLanes: Draws['fits'] = ({ rows, lanes }) => between(rows! * lanes!)
const shares: Draws['fits'] = ({ shares, lanes }) => between(shares! * lanes!)
const SHARES: Grid = { shares: [8, 16, 32], share: [16, 32, 64], ...LANES, by: [1, 2, 4] }
const LENGTHS = [32, 64, 128, 256, 512] as const

const GPU: Readonly<Record<string, readonly Draws[]>> = {
  spmm: [
    { schedule: 'gpu', grid: { rows: [4, 8], cols: [32] }, count: 1 },
    { schedule: 'registers', grid: { rows: [4, 8], lanes: [8, 16], each: [4] }, count: 2 },
    {
      schedule: 'vector',
      grid: { rows: [2, 4, 8, 16], ...LANES, ahead: [2, 4, 8] },
      count: 8,
      fits: rowsOfLanes,
    },
    { schedule: 'persistent', grid: { grid: [1056], rows: [8, 16], ...LANES, ahead: [4] }, count: 2 },
    {
      schedule: 'lanes',
      grid: {
        rows: [1, 2, 4, 8],
        lanes: [4, 8, 16],
        each: [4],
        at_once: [2, 4, 8, 16],
        ahead: [2, 4],
        deep: [1, 2],
      },
      count: 8,
      fits: ({ rows, lanes, at_once }) => between(rows! * lanes! * at_once!),
    },
    {
      schedule: 'by_length',
      grid: {
        s: [64, 128, 512],
        rows: [2, 4, 8],
        lanes: [4, 8, 16],
        each: [4],
        at_once: [2, 4],
        ahead: [2, 4],
        warps: [4, 8],
        deep: [1, 2],
      },
      count: 5,
      fits: ({ rows, lanes, at_once, warps }) =>
        between(rows! * lanes! * at_once!) && between(warps! * lanes! * at_once!),
    },
    {
      schedule: 'by_length_merged',
      grid: {
        s: LENGTHS,
        rows: [2, 4, 8],
        lanes: [4, 8, 16],
        each: [4],
        at_once: [2, 4, 8],
        ahead: [2, 4],
        deep: [1, 2],
      },
      count: 6,
      fits: ({ rows, lanes, at_once }) => between(rows! * lanes! * at_once!),
    },
    {
      schedule: 'ahead',
      grid: { s: LENGTHS, rows: [4, 8, 16], ...LANES, ahead: [4, 8], warps: [8, 16, 32] },
      count: 7,
      fits: ({ rows, lanes, warps }) => between(rows! * lanes!) && between(warps! * lanes!),
    },
    {
      schedule: 'ahead_merged',
      grid: { s: LENGTHS, rows: [4, 8, 16, 32], ...LANES, ahead: [4, 8] },
      count: 8,
      fits: rowsOfLanes,
    },
    { schedule: 'balanced', grid: SHARES, count: 8, fits: shares },
    { schedule: 'balanced_within', grid: SHARES, count: 6, fits: shares },
    { schedule: 'balanced_ordered', grid: SHARES, count: 4, fits: shares },
    { schedule: 'hyb', grid: { c: [1, 2], k: [3, 5], slots: [256], rows: [4, 8], cols: [32] }, count: 2 },
    { schedule: 'hyb_merged', grid: { c: [1, 2], k: [3, 5], slots: [256], rows: [8], cols: [32] }, count: 2 },
    { schedule: 'hyb_combined', grid: { c: [1], k: [3, 5], slots: [256], rows: [8], cols: [32] }, count: 1 },
    { schedule: 'sell', grid: { c: [4, 8], s: [256, 1024], cols: [32] }, count: 3 },
    { schedule: 'sr_bcrs', grid: { t: [4, 8], g: [8, 16], cols: [32] }, count: 2 },
    { schedule: 'bsr', grid: { b: [4, 8], cols: [32] }, count: 2 },
    { schedule: 'bsr_rest', grid: { b: [4, 8], rows: [8], cols: [32] }, count: 1 },
    {
      schedule: 'partitioned',
      grid: { c: [2, 4], rows: [8, 16], ...LANES, ahead: [4, 8] },
      count: 3,
      fits: rowsOfLanes,
    },
    { schedule: 'partitioned_balanced', grid: { c: [2, 4], ...SHARES }, count: 2, fits: shares },
    { schedule: 'shared', grid: { tile: [32], cols: [32] }, count: 1 },
  ],
  sddmm: [
    { schedule: 'gpu', grid: { threads: [64, 128] }, count: 1 },
    { schedule: 'cooperative', grid: { edges: [4, 8], lanes: [16, 32] }, count: 2 },
    { schedule: 'rowwise', grid: { threads: [32, 64], tile: [32] }, count: 1 },
    { schedule: 'sr_bcrs', grid: { t: [8], g: [16] }, count: 1 },
    { schedule: 'bsr', grid: { b: [4, 8] }, count: 1 },
    { schedule: 'hyb_cooperative', grid: { c: [1], k: [3, 5], edges: [8], lanes: [16, 32] }, count: 1 },
    {
      schedule: 'wide',
      grid: { groups: [4, 8, 16], per: [1, 2, 4], lanes: [8, 16, 32], each: [4], deep: [1, 2, 4] },
      count: 8,
      fits: ({ groups, lanes }) => between(groups! * lanes!),
    },
  ],
  spmv: [
    { schedule: 'gpu', grid: { threads: [64, 128, 256] }, count: 2 },
    {
      schedule: 'cooperative',
      grid: { rows: [2, 4, 8, 16, 32], lanes: [4, 8, 16, 32], ahead: [1, 2, 4] },
      count: 8,
      fits: rowsOfLanes,
    },
    {
      schedule: 'by_length',
      grid: {
        s: [128, 512, 1024],
        rows: [8, 16, 32],
        lanes: [4, 8, 16, 32],
        ahead: [2, 4],
        threads: [128, 256],
      },
      count: 6,
      fits: rowsOfLanes,
    },
    {
      schedule: 'balanced',
      grid: { threads: [64, 128, 256], share: [4, 8, 16, 32], by: [2, 4, 8] },
      count: 6,
      fits: ({ share, by }) => by! <= share!,
    },
    { schedule: 'coo', grid: { threads: [128] }, count: 1 },
    { schedule: 'bsr', grid: { b: [4] }, count: 1 },
    { schedule: 'sell', grid: { c: [32], s: [256, 1024], slices: [2, 4] }, count: 3 },
    { schedule: 'hyb', grid: { c: [1], k: [3, 5], threads: [128] }, count: 1 },
  ],
  softmax: [
    { schedule: 'gpu', grid: { threads: [64, 128] }, count: 1 },
    {
      schedule: 'cooperative',
      grid: { rows: [1, 2, 4, 8, 16], lanes: [4, 8, 16, 32, 128], ahead: [1, 2, 4] },
      count: 8,
      fits: rowsOfLanes,
    },
    {
      schedule: 'by_length',
      grid: { s: [128, 512, 1024], rows: [4, 8, 16], lanes: [8, 16, 32], ahead: [2, 4] },
      count: 5,
      fits: rowsOfLanes,
    },
  ],
}

const CPU: Readonly<Record<string, readonly Draws[]>> = {
  spmm: [
    { schedule: 'cpu', grid: { each: [1, 2, 4, 8, 16, 32] }, count: 6 },
    { schedule: 'bsr', grid: { b: [2, 4, 8], cols: [8, 32] }, count: 3 },
    { schedule: 'sell', grid: { c: [8], s: [256], cols: [8, 32] }, count: 2 },
    { schedule: 'sr_bcrs', grid: { t: [4, 8], g: [8], cols: [8, 32] }, count: 2 },
    {
      schedule: 'hyb_pieces',
      grid: { c: [1, 4], k: [3, 5], slots: [256], rows: [8], cols: [8, 32] },
      count: 3,
    },
    { schedule: 'registers', grid: { rows: [8], lanes: [4, 8], each: [4, 8] }, count: 2 },
    { schedule: 'vector', grid: { rows: [8], lanes: [1, 4, 8], each: [4, 8], ahead: [2, 4] }, count: 3 },
    {
      schedule: 'partitioned',
      grid: { c: [2, 4, 8], rows: [8], lanes: [1, 4], each: [8], ahead: [1, 4] },
      count: 4,
    },
    {
      schedule: 'ahead',
      grid: { s: [128], rows: [8], lanes: [1, 4], each: [8], ahead: [4], warps: [1] },
      count: 2,
    },
  ],
  sddmm: [
    { schedule: 'cpu', grid: {}, count: 1 },
    { schedule: 'gpu', grid: { threads: [128] }, count: 1 },
    { schedule: 'sr_bcrs', grid: { t: [4, 8], g: [8] }, count: 2 },
    { schedule: 'bsr', grid: { b: [2, 4] }, count: 2 },
    { schedule: 'rowwise', grid: { threads: [8, 64], tile: [8, 32] }, count: 2 },
  ],
  spmv: [
    { schedule: 'cpu', grid: {}, count: 1 },
    { schedule: 'gpu', grid: { threads: [128] }, count: 1 },
    { schedule: 'coo', grid: { threads: [128] }, count: 1 },
    { schedule: 'bsr', grid: { b: [2, 4, 8] }, count: 2 },
    { schedule: 'sell', grid: { c: [8, 32], s: [256], slices: [4] }, count: 2 },
    { schedule: 'hyb_pieces', grid: { c: [1], k: [3, 5], threads: [128] }, count: 2 },
    { schedule: 'balanced', grid: { threads: [128], share: [8, 32], by: [4] }, count: 2 },
  ],
  softmax: [
    { schedule: 'cpu', grid: {}, count: 1 },
    { schedule: 'gpu', grid: { threads: [64] }, count: 1 },
    { schedule: 'by_length', grid: { s: [128], rows: [8], lanes: [1, 4], ahead: [2, 4] }, count: 2 },
  ],
}

/** The same draws everywhere, so that figures of several runs are of the same kernels. */
function drawn(kernel: string, { schedule, grid, count, fits = () => true }: Draws, seed: number): string[] {
  const names = Object.keys(grid)
  const all = names
    .reduce<readonly Record<string, number>[]>(
      (points, name) => points.flatMap((p) => grid[name]!.map((v) => ({ ...p, [name]: v }))),
      [{}],
    )
    .filter(fits)
  const order = shuffled(all.length, new Random(seed))
  return [...order.subarray(0, count)]
    .map((k) => Object.values(all[k]!))
    .map((args) => `${kernel}.spt:${kernel}.${schedule}${args.length > 0 ? `(${args.join(',')})` : ''}`)
}

/** As `spmm.balanced(8, 32, 16, 4, 2)` for a width of 32: more lanes than there is work for. */
function idles({ schedule, args, kernel }: Candidate, width: number): boolean {
  if (kernel !== 'spmm') return false
  const draws = GPU.spmm!.find((d) => d.schedule === schedule)
  const names = Object.keys(draws?.grid ?? {})
  const [lanes, each] = [args[names.indexOf('lanes')], args[names.indexOf('each')]]
  return lanes !== undefined && each !== undefined && lanes * each > Math.max(width, 32)
}

/**
 * What is measured of a suite on a kind of device: `listed` of `candidates.json` and `count` of the pool. Which ones: `seed`
 * says, so that cases see different ones.
 */
export function poolOf(
  suite: string,
  kind: 'cpu' | 'webgpu' | 'cuda',
  width: number,
  { count, listed: most, seed }: { readonly count: number; readonly listed: number; readonly seed: number },
): readonly Candidate[] {
  const kernel = suite
  const pool = (kind === 'cpu' ? CPU : GPU)[suite] ?? []
  const listed = kind === 'cpu' ? [] : fieldOf(suite, [], widthValues(width)).candidates
  const own = pool
    .flatMap((d, k) => drawn(kernel, d, 1000 + k))
    .map((t) => parseCandidate(t))
    .filter((c) => !idles(c, width) && listed.every((l) => l.text !== c.text))
  const random = new Random(seed)
  const some = (from: readonly Candidate[], n: number): Candidate[] =>
    [...shuffled(from.length, random).subarray(0, n)].map((k) => from[k]!)
  const known = listed.filter((c) => c.schedule !== 'auto' && !idles(c, width))
  return [...some(known, most), ...some(own, count)]
}
