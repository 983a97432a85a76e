/** Horizontal fusion: nests that do not use each other's results become one launch. */
import { groupBy } from '../ir/memoize.ts'
import type { For, Kernel2 } from '../ir/statements/loops.ts'
import { atOnce } from '../schedule/legality/nest-dependence.ts'
import type { Decisions } from './draft.ts'
import type { Rule } from './partition.ts'
import type { NestShape } from './strands.ts'
import type { NestSteps } from './trials.ts'

type Selection = ReadonlyMap<NestShape, Rule>

/** The step that makes several nests one launch. */
export const mergeSteps = (order: readonly NestShape[]): NestSteps => ({
  nests: order,
  key: 'merge',
  on: (nests) => (draft) => draft.step({ kind: 'merge', nests: nests.map((n) => n.name) }),
})

/** Nests of one launch. */
export interface Merge {
  readonly nests: readonly NestShape[]
  /** Prefix of the decisions that the nests share. */
  readonly prefix: string
  /** The nests in the order of their blocks. */
  readonly order: readonly NestShape[]
}

/**
 * The groups of nests that become one launch: consecutive nests that are identical up to names, if that is legal, and the copies of
 * an iteration over several parts, the remainder part first.
 */
export function chooseMerges(
  nests: readonly NestShape[],
  selection: Selection,
  kernel: Kernel2,
  d: Decisions,
  isLegal: (run: readonly NestShape[]) => boolean,
): readonly Merge[] {
  const tops = new Map(kernel.body.flatMap((s) => (s.kind === 'for' ? [[s.var, s] as const] : [])))
  const merges: Merge[] = []
  for (const run of identicalRuns(nests, selection, tops, kernel)) {
    if (!run.every((n) => selection.has(n)) || !isLegal(run)) continue
    const { prefix } = run[0]!
    if (d.form(`${prefix}.launches`, ['merged', 'apart']) === 'merged')
      merges.push({ nests: run, prefix, order: run })
  }
  for (const [stem, copies] of groupBy(selection.keys(), (n) => n.stem)) {
    const others = (k: number): readonly NestShape[] => copies.slice(0, k)
    if (copies.length < 2 || !copies.every((n, k) => isIndependent(n, others(k), selection, tops, kernel)))
      continue
    if (d.form(`${stem}.launches`, ['apart', 'merged']) === 'merged')
      merges.push({ nests: copies, prefix: stem, order: [...copies].reverse() })
  }
  return merges
}

type Tops = ReadonlyMap<string, For>

/** Runs of consecutive nests that are identical up to names, and of which none uses what another writes. */
function identicalRuns(
  nests: readonly NestShape[],
  selection: Selection,
  tops: Tops,
  kernel: Kernel2,
): readonly (readonly NestShape[])[] {
  const runs: NestShape[][] = []
  for (const nest of nests) {
    const run = runs.at(-1)
    const isIdentical = run?.every((n) => n.key === nest.key && n.stem !== nest.stem)
    if (isIdentical && isIndependent(nest, run!, selection, tops, kernel)) run!.push(nest)
    else runs.push([nest])
  }
  return runs.filter((r) => r.length > 1)
}

/** True if a nest may run concurrently with others: buffers that all update atomically do not conflict. */
const isIndependent = (
  nest: NestShape,
  others: readonly NestShape[],
  selection: Selection,
  tops: Tops,
  kernel: Kernel2,
): boolean =>
  others.every((other) => {
    const theirs = selection.get(other)?.atomic ?? []
    const atomic = new Set(selection.get(nest)?.atomic.filter((b) => theirs.includes(b)))
    return !atOnce(kernel, tops.get(nest.top)!, tops.get(other.top)!, atomic)
  })
