/** Sketches for devices with threads: for each nest, one of the rules that apply to it. */
import type { DisjointWrites, Kernel2 } from '../ir/statements/loops.ts'
import { isBuiltinReducer } from '../ir/values/monoid.ts'
import type { Decisions } from './decisions.ts'
import { planDenseTiles, reusedOperands } from './dense-tiles.ts'
import type { Draft, Plan, Schedulable } from './draft.ts'
import { planElements } from './element-parallel.ts'
import { chooseEpilogues, producerOf } from './epilogues.ts'
import { planLanes } from './lane-parallel.ts'
import { isChunkable, planChunks } from './merge-path.ts'
import { hasVectors, planRowPerGroup, planRowPerThread, rowLoopOf } from './row-parallel.ts'
import type { NestShape, Strand } from './strands.ts'
import { type BlockShape, type Partition, partitionLoops, type RuleContext } from './threads.ts'

/** A rule with its context, ready to choose values. */
interface Rule {
  readonly name: string
  /** Buffers that several threads may update concurrently. */
  readonly atomic: readonly string[]
  /** True if a thread holds complete elements at some time. */
  readonly holds: boolean
  readonly plan: (shape: BlockShape) => Plan
}

function chooseRule(rules: readonly Rule[], nest: NestShape, d: Decisions): Rule {
  const names = rules.map((c) => c.name)
  const kind = d.form(`${nest.prefix}.sketch`, names)
  return rules[names.indexOf(kind)]!
}

export function planParallel(
  nests: readonly NestShape[],
  kernel: Kernel2,
  context: RuleContext,
): <K extends Schedulable<K>>(draft: Draft<K>) => void {
  const d = context.decisions
  const selection = new Map<NestShape, Rule>()
  for (const [k, nest] of nests.entries()) {
    const rules = rulesOf(nest, context)
    if (rules.length === 0 || producerOf(nest, nests.slice(0, k), kernel) !== undefined) continue
    selection.set(nest, chooseRule(rules, nest, d))
  }
  const destinations = chooseEpilogues(
    nests,
    kernel,
    d,
    (producer) => selection.get(producer)?.holds ?? false,
  )
  for (const nest of nests) {
    const rules = selection.has(nest) || destinations.has(nest.name) ? [] : rulesOf(nest, context)
    if (rules.length > 0) selection.set(nest, chooseRule(rules, nest, d))
  }
  const merges = chooseMerges(selection, kernel.disjointWrites ?? [], d)
  const plans = [...selection].map(([nest, { atomic, plan }]) => {
    const names = merges.find((group) => group.includes(nest.name))
    const ruleNames = new Set([...selection].flatMap(([n, c]) => (names?.includes(n.name) ? [c.name] : [])))
    return {
      nest,
      atomic,
      plan: plan({ name: names ? nest.stem : nest.prefix, isMixed: ruleNames.size > 1 }),
    }
  })
  return (draft) => {
    for (const buffer of new Set(plans.flatMap((p) => p.atomic))) draft.step({ kind: 'atomic', buffer })
    const arrangements = plans.map(({ nest, plan }) => ({ nest, arrangements: plan(draft) }))
    for (const { nest, arrangements: a } of arrangements)
      for (const [epilogue, destination] of destinations)
        if (destination === nest.name)
          draft.step({
            kind: 'compute_at',
            nest: epilogue,
            at: a.completeAt === undefined ? nest.top : { var: a.completeAt },
          })
    for (const { arrangements: a } of arrangements) a.finish(draft)
    for (const names of merges) draft.step({ kind: 'merge', nests: names })
  }
}

/**
 * Copies of an iteration over several parts that become one launch. The last part, which holds the remainder, comes
 * first.
 */
function chooseMerges(
  selection: ReadonlyMap<NestShape, Rule>,
  disjointWrites: readonly DisjointWrites[],
  d: Decisions,
): readonly (readonly string[])[] {
  const byStem = new Map<string, NestShape[]>()
  for (const n of selection.keys()) byStem.set(n.stem, [...(byStem.get(n.stem) ?? []), n])
  return [...byStem].flatMap(([stem, nests]) => {
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
  const writers = new Map<string, NestShape[]>()
  for (const n of nests)
    for (const b of new Set(n.strands.flatMap((s) => s.buffers)))
      writers.set(b, [...(writers.get(b) ?? []), n])
  return [...writers].every(([buffer, sharing]) => {
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
    return [
      { name: 'a group a row', atomic: [], holds: false, plan: planGroup(false) },
      { name: 'a thread a row', atomic: [], holds: false, plan: () => planRowPerThread(nest, row, context) },
      // If a group's row already is work for a block, both rules are the same.
      ...(hasVectors(nest.strands)
        ? []
        : [{ name: 'a block a row', atomic: [], holds: false, plan: planGroup(true) }]),
    ]
  }
  const partition = partitionLoops(strand)
  return partition ? strandRules(strand, partition, context) : []
}

function strandRules(strand: Strand, partition: Partition, context: RuleContext): readonly Rule[] {
  if (partition.hasConflicts && !hasAtomics(strand)) return []
  const atomic = partition.hasConflicts ? strand.buffers : []
  const operands = reusedOperands(strand, partition)
  const elements = {
    name: 'elements',
    holds: true,
    atomic,
    plan: (shape: BlockShape) => planElements(strand, partition, context, shape),
  }
  const lanes = {
    name: 'lanes',
    holds: false,
    atomic,
    plan: (shape: BlockShape) => planLanes(strand, partition, context, shape),
  }
  const chunks = {
    name: 'shares',
    holds: false,
    atomic: strand.buffers,
    plan: () => planChunks(strand, partition, context),
  }
  const tiles = {
    name: 'tiles',
    holds: true,
    atomic,
    plan: () => planDenseTiles(strand, partition, operands, context),
  }
  const isSegmented = partition.inner?.role !== 'contiguous'
  return [
    ...(operands.length > 0 ? [tiles] : []),
    ...(isChunkable(strand, partition) ? [chunks] : []),
    ...(partition.sums.length === 0 ? [elements] : isSegmented ? [lanes, elements] : [elements, lanes]),
  ]
}

/** True if every update has one target and a reducer with atomics. */
const hasAtomics = ({ writes }: Strand): boolean =>
  writes.every((w) => w.kind === 'reduce' && w.targets.length === 1 && isBuiltinReducer(w.reducer.name))
