/** Sketches for devices with threads: for each nest, the rules that apply to it. */
import { isBuiltinReducer } from '../ir/values/monoid.ts'
import { planDenseTiles, reusedOperands } from './dense-tiles.ts'
import { planElements } from './element-parallel.ts'
import { isChunkable, planBlock, planChunks, planLanes } from './lane-parallel.ts'
import { type BlockShape, type Partition, partitionLoops, type Rule, type RuleContext } from './partition.ts'
import { hasVectors, planRowPerGroup, planRowPerThread, rowLoopsOf } from './row-parallel.ts'
import type { NestShape, Strand } from './strands.ts'
import { hasFewElements } from './trip-counts.ts'

export function parallelRules(nest: NestShape, context: RuleContext): readonly Rule[] {
  const [strand, ...others] = nest.strands
  if (!strand) return []
  if (others.length > 0) {
    const rows = rowLoopsOf(nest)
    if (!rows) return []
    const planGroup = (whole: boolean) => (shape: BlockShape) =>
      planRowPerGroup(nest, rows, context, shape, whole)
    const rule = (name: string, plan: Rule['plan']): Rule => ({ name, atomic: [], holds: false, plan })
    return [
      rule('a group a row', planGroup(false)),
      rule('a thread a row', () => planRowPerThread(nest, rows, context)),
      // If a group's row already is work for a block, both rules are the same.
      ...(hasVectors(nest.strands) || rows.areContiguous ? [] : [rule('a block a row', planGroup(true))]),
    ]
  }
  const partition = partitionLoops(strand)
  if (partition) return strandRules(strand, partition, context)
  const isSum =
    strand.loops.length > 0 &&
    strand.loops.every((l) => l.reduce && l.role === 'reduction' && l.extentNeeds.size === 0)
  const plan: Rule['plan'] = (shape) => planBlock(strand, context, shape)
  return isSum ? [{ name: 'a block', atomic: [], holds: false, plan }] : []
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
  const products = operands.length > 0 ? [tiles] : []
  if (partition.sums.length > 0 && hasFewElements(strand, context)) return [lanes, ...products, elements]
  return [
    ...products,
    ...(isChunkable(strand, partition) ? [{ ...chunks, atomic: strand.buffers }] : []),
    ...(partition.sums.length === 0 ? [elements] : isSegmented ? [lanes, elements] : [elements, lanes]),
  ]
}

/** True if every update has one target and a reducer with atomics. */
const hasAtomics = ({ writes }: Strand): boolean =>
  writes.every((w) => w.kind === 'reduce' && w.targets.length === 1 && isBuiltinReducer(w.reducer.name))
