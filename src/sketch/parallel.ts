/** Sketches for devices with threads: for each nest, one of the rules that apply to it. */
import { groupBy } from '../ir/memoize.ts'
import type { DisjointWrites, Kernel2 } from '../ir/statements/loops.ts'
import { isBuiltinReducer } from '../ir/values/monoid.ts'
import { planDenseTiles, reusedOperands } from './dense-tiles.ts'
import type { Decisions, Draft, Plan, Schedulable } from './draft.ts'
import { planElements } from './element-parallel.ts'
import { chooseEpilogues, placeEpilogues, producerOf } from './epilogues.ts'
import { isChunkable, planChunks, planLanes } from './lane-parallel.ts'
import { hasVectors, planRowPerGroup, planRowPerThread, rowLoopOf } from './row-parallel.ts'
import type { BlockShape, NestShape, Partition, RuleContext, Strand } from './strands.ts'
import { partitionLoops } from './strands.ts'

/** A rule with its context, ready to choose values. */
interface Rule {
  readonly name: string
  /** Buffers that several threads may update concurrently. */
  readonly atomic: readonly string[]
  /** True if a thread holds complete elements at some time. */
  readonly holds: boolean
  readonly plan: (shape: BlockShape) => Plan
}

export function planParallel(
  nests: readonly NestShape[],
  kernel: Kernel2,
  context: RuleContext,
): <K extends Schedulable<K>>(draft: Draft<K>) => void {
  const d = context.decisions
  const selection = new Map<NestShape, Rule>()
  const select = (nest: NestShape): void => {
    const rules = rulesOf(nest, context)
    const names = rules.map((r) => r.name)
    if (names.length > 0) selection.set(nest, rules[names.indexOf(d.form(`${nest.prefix}.sketch`, names))]!)
  }
  for (const [k, nest] of nests.entries())
    if (producerOf(nest, nests.slice(0, k), kernel) === undefined) select(nest)
  const destinations = chooseEpilogues(
    nests,
    kernel,
    d,
    (producer) => selection.get(producer)?.holds ?? false,
  )
  for (const nest of nests) if (!selection.has(nest) && !destinations.has(nest.name)) select(nest)
  const merges = chooseMerges(selection, kernel.disjointWrites ?? [], d)
  const plans = [...selection].map(([nest, { atomic, plan }]) => {
    const names = merges.find((group) => group.includes(nest.name))
    const ruleNames = new Set([...selection].flatMap(([n, c]) => (names?.includes(n.name) ? [c.name] : [])))
    const shape = { name: names ? nest.stem : nest.prefix, isMixed: ruleNames.size > 1 }
    return { nest, atomic, plan: plan(shape) }
  })
  return (draft) => {
    for (const buffer of new Set(plans.flatMap((p) => p.atomic))) draft.step({ kind: 'atomic', buffer })
    const arranged = plans.map(({ nest, plan }) => ({ nest, strands: [plan(draft)] }))
    placeEpilogues(draft, destinations, arranged)
    for (const { strands } of arranged) for (const s of strands) s.finish(draft)
    for (const names of merges) draft.step({ kind: 'merge', nests: names })
  }
}

/** Copies of an iteration over several parts that become one launch, the remainder part first. */
function chooseMerges(
  selection: ReadonlyMap<NestShape, Rule>,
  disjointWrites: readonly DisjointWrites[],
  d: Decisions,
): readonly (readonly string[])[] {
  return [...groupBy(selection.keys(), (n) => n.stem)].flatMap(([stem, nests]) => {
    if (nests.length < 2 || !areIndependent(nests, selection, disjointWrites)) return []
    const isMerged = d.form(`${stem}.launches`, ['apart', 'merged']) === 'merged'
    return isMerged ? [nests.map((n) => n.name).reverse()] : []
  })
}

/** True if the nests write disjoint elements of the buffers they share, or all update them atomically. */
function areIndependent(
  nests: readonly NestShape[],
  selection: ReadonlyMap<NestShape, Rule>,
  disjointWrites: readonly DisjointWrites[],
): boolean {
  const writes = nests.flatMap((nest) =>
    [...new Set(nest.strands.flatMap((s) => s.buffers))].map((buffer) => ({ buffer, nest })),
  )
  return [...groupBy(writes, (w) => w.buffer)].every(([buffer, writers]) => {
    const sharing = writers.map((w) => w.nest)
    if (sharing.length < 2 || sharing.every((n) => selection.get(n)!.atomic.includes(buffer))) return true
    return disjointWrites.some((w) => {
      const groups = sharing.map((n) => w.nests.findIndex((g) => g.includes(n.name)))
      return w.buffer === buffer && !groups.includes(-1) && new Set(groups).size === groups.length
    })
  })
}

function rulesOf(nest: NestShape, context: RuleContext): readonly Rule[] {
  const [strand, ...others] = nest.strands
  if (!strand) return []
  if (others.length > 0) {
    const row = rowLoopOf(nest)
    if (!row) return []
    const planGroup = (whole: boolean) => (shape: BlockShape) =>
      planRowPerGroup(nest, row, context, shape, whole)
    const rule = (name: string, plan: Rule['plan']): Rule => ({ name, atomic: [], holds: false, plan })
    return [
      rule('a group a row', planGroup(false)),
      rule('a thread a row', () => planRowPerThread(nest, row, context)),
      // If a group's row already is work for a block, both rules are the same.
      ...(hasVectors(nest.strands) ? [] : [rule('a block a row', planGroup(true))]),
    ]
  }
  const partition = partitionLoops(strand)
  return partition ? strandRules(strand, partition, context) : []
}

function strandRules(strand: Strand, partition: Partition, context: RuleContext): readonly Rule[] {
  if (partition.hasConflicts && !hasAtomics(strand)) return []
  const atomic = partition.hasConflicts ? strand.buffers : []
  const operands = reusedOperands(strand, partition)
  const rule = (name: string, holds: boolean, plan: Rule['plan']): Rule => ({ name, holds, atomic, plan })
  const elements = rule('elements', true, (shape) => planElements(strand, partition, context, shape))
  const lanes = rule('lanes', false, (shape) => planLanes(strand, partition, context, shape))
  const chunks = rule('shares', false, () => planChunks(strand, partition, context))
  const tiles = rule('tiles', true, () => planDenseTiles(strand, partition, operands, context))
  const isSegmented = partition.inner?.role !== 'contiguous'
  return [
    ...(operands.length > 0 ? [tiles] : []),
    ...(isChunkable(strand, partition) ? [{ ...chunks, atomic: strand.buffers }] : []),
    ...(partition.sums.length === 0 ? [elements] : isSegmented ? [lanes, elements] : [elements, lanes]),
  ]
}

/** True if every update has one target and a reducer with atomics. */
const hasAtomics = ({ writes }: Strand): boolean =>
  writes.every((w) => w.kind === 'reduce' && w.targets.length === 1 && isBuiltinReducer(w.reducer.name))
