/**
 * The terms that a cost is predicted from: of a kernel's expected work on some data, named numbers that mean the same
 * whatever the kernel is.
 */
import { DTYPE_BYTES } from '../../ir/dtype.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Kernel2 } from '../../ir/loops.ts'
import { elementsOf } from './elements.ts'
import type { MatrixStatistics } from './statistics.ts'
import type { Structure } from './structure.ts'
import type { KernelWork, LaunchWork, Traffic, Way } from './work.ts'

/** By name; all finite and not negative. */
export type Terms = Readonly<Record<TermName, number>>

export const TERM_NAMES = [
  'launches',
  'clears',
  'clearedBytes',
  'operations',
  'matrixOperations',
  'functions',
  'statements',
  'entries',
  'branches',
  'surprises',
  'spills',
  'elements',
  'loadRequests',
  'loadBytes',
  'gatherBytes',
  'gatherRun',
  'gatherElements',
  'storeRequests',
  'storeBytes',
  'atomicRequests',
  'atomicBytes',
  'searches',
  'exchanges',
  'sharedBytes',
  'footprint',
  'gatherFootprint',
  'writtenFootprint',
  'blocks',
  'blockThreads',
  'warps',
  'steps',
  'longestSteps',
  'rounds',
  'longestRounds',
  'imbalance',
  'blockReuse',
  'chipReuse',
  'padding',
] as const
export type TermName = (typeof TERM_NAMES)[number]

const SECTOR = 32
const WARP = 32
/** Threads that a chip has at work at one time, for windows of rows that run together; only its magnitude matters. */
const AT_WORK = 132 * 2048

const sum = <T>(xs: Iterable<T>, of: (x: T) => number): number => {
  let n = 0
  for (const x of xs) n += of(x)
  return n
}

/** Statistics of the sparse operand where there is one. */
export function termsOf(
  kernel: Kernel2,
  { launches, clears }: KernelWork,
  structure: Structure,
  statistics: MatrixStatistics | null,
): Terms {
  const all = (way: Way, of: (t: Traffic) => number): number =>
    sum(launches, (l) => sum(l.traffic[way].values(), of))
  const bytesOf = new Map(
    kernel.buffers.map((b) => [b.name, DTYPE_BYTES[b.dtype] * elementsOf(b, structure)]),
  )
  const touched = (ways: readonly Way[], which: (t: Traffic) => boolean = () => true): number => {
    const names = new Set(
      launches.flatMap((l) =>
        ways.flatMap((w) => [...l.traffic[w]].filter(([, t]) => which(t)).map(([n]) => n)),
      ),
    )
    return sum(names, (n) => bytesOf.get(n) ?? 0)
  }
  const gathered = all('loads', (t) => t.gathered)
  const runs = all('loads', (t) => t.runs)
  const threads = sum(launches, (l) => l.blocks * l.threads)
  const weighted = (of: (l: LaunchWork) => number): number =>
    threads === 0 ? 0 : sum(launches, (l) => l.blocks * l.threads * of(l)) / threads
  const longest = sum(launches, (l) => l.steps.most)
  const mean = sum(launches, (l) => l.steps.mean)
  // Rows whose gathers share a cache: those of a block, and those that the chip works on at one time.
  const gathersOfRow = gathered / Math.max(1, statistics?.rows ?? 1)
  const ofBlock =
    gathered /
    Math.max(
      1,
      sum(launches, (l) => l.blocks),
    ) /
    Math.max(1, gathersOfRow)
  const ofChip =
    ofBlock *
    Math.max(
      1,
      AT_WORK /
        Math.max(
          1,
          weighted((l) => l.threads),
        ),
    )
  const reuse = (rows: number): number => (statistics ? reuseOf(statistics, rows) : 1)
  return {
    launches: launches.length,
    clears: clears.length,
    clearedBytes: sum(clears, (c) => c.bytes),
    operations: sum(launches, (l) => l.operations),
    matrixOperations: sum(launches, (l) => l.matrixOperations),
    functions: sum(launches, (l) => l.functions),
    statements: sum(launches, (l) => l.statements),
    entries: sum(launches, (l) => l.entries),
    branches: sum(launches, (l) => l.branches),
    surprises: sum(launches, (l) => l.surprises),
    spills: sum(launches, (l) => l.spills),
    elements:
      all('loads', (t) => t.elements) +
      all('stores', (t) => t.elements) +
      all('atomics', (t) => 2 * t.elements),
    loadRequests: all('loads', (t) => t.requests),
    loadBytes: SECTOR * all('loads', (t) => t.sectors),
    gatherBytes: SECTOR * all('loads', (t) => (t.gathered > 0 ? t.sectors : 0)),
    gatherRun: gathered === 0 ? 0 : runs / gathered,
    gatherElements: gathered,
    storeRequests: all('stores', (t) => t.requests),
    storeBytes: SECTOR * all('stores', (t) => t.sectors),
    atomicRequests: all('atomics', (t) => t.requests),
    atomicBytes: SECTOR * all('atomics', (t) => t.sectors),
    searches: sum(launches, (l) => l.searches),
    exchanges: sum(launches, (l) => l.exchanges),
    sharedBytes: sum(launches, (l) => l.shared),
    footprint: touched(['loads', 'stores', 'atomics']),
    gatherFootprint: touched(['loads'], (t) => t.gathered > 0),
    writtenFootprint: touched(['stores', 'atomics']),
    blocks: sum(launches, (l) => l.blocks),
    blockThreads: weighted((l) => l.threads),
    warps: sum(launches, (l) => l.blocks * Math.ceil(l.threads / WARP)),
    steps: mean,
    longestSteps: longest,
    rounds: sum(launches, (l) => l.rounds.mean),
    longestRounds: sum(launches, (l) => l.rounds.most),
    imbalance: mean === 0 ? 1 : longest / mean,
    blockReuse: reuse(ofBlock),
    chipReuse: reuse(ofChip),
    padding: statistics && statistics.nonzeros > 0 ? slotsOf(kernel, structure) / statistics.nonzeros : 1,
  }
}

/** Elements for each different column in a window of so many rows, between those that are known. */
function reuseOf({ reuse, nonzeros, columns }: MatrixStatistics, rows: number): number {
  const known: (readonly [number, number])[] = [[1, 1], ...reuse]
  const upper = known.find(([w]) => w >= rows)
  if (!upper) return known.at(-1)?.[1] ?? Math.max(1, nonzeros / Math.max(1, columns))
  const lower = known.findLast(([w]) => w <= rows) ?? upper
  if (lower === upper || lower[0] === upper[0]) return upper[1]
  const at = Math.log(rows / lower[0]) / Math.log(upper[0] / lower[0])
  return lower[1] * (upper[1] / lower[1]) ** at
}

/** Elements of what the sparse operand is stored in: the arrays whose length is a count. */
function slotsOf(kernel: Kernel2, s: Structure): number {
  const isSparse = (b: Kernel2['buffers'][number]): boolean =>
    b.role === 'in' && b.shape.some((e) => [...freeVars(e)].some((v) => s.counts.has(v)))
  return sum(kernel.buffers.filter(isSparse), (b) => elementsOf(b, s))
}
