/**
 * Splits long reductions into few elements before they are sketched: partial results of chunks fill a GPU that the elements
 * alone leave idle, and a second nest combines them (split-K; the `rfactor` rule of Ansor, Zheng et al., OSDI 2020).
 */
import { mentions } from '../ir/expressions/expr-tree.ts'
import { accessesOf, type BufferAccess } from '../ir/statements/accesses.ts'
import { reusedOperands } from './dense-tiles.ts'
import { type NestChange, onlyStrand } from './fusion.ts'
import { partitionLoops } from './partition.ts'
import type { NestShape, Strand, StrandLoop } from './strands.ts'
import { elementCount, longestLoop, tripCount } from './trip-counts.ts'

type Sizes = ReadonlyMap<string, number>

/** Minimum iterations of a chunk, and of a reduction that is split. */
const MIN_CHUNK = 256
const MIN_LENGTH = 1024
/** Chunks are multiples of this, so that the slices of tiles divide them. */
const CHUNK_STEP = 64
/** Elements of a block: of a product, which shares operands, and of a sum, whose elements have a warp each. */
const ELEMENTS = { product: 4096, sum: 4 } as const
/** Blocks that fill a large GPU. */
const BLOCKS = 1024

export const reductionSplits = (nests: readonly NestShape[], _kernel: unknown, sizes: Sizes): NestChange[] =>
  nests.flatMap((nest): NestChange[] => {
    const strand = onlyStrand(nest)
    const split = strand && splitOf(strand, sizes)
    if (!split) return []
    const { loop, chunk } = split
    const decision = `${nest.prefix}.reduction`
    const key = `${nest.name} ${chunk}`
    return [
      {
        decision,
        values: ['chunks', 'whole'],
        key,
        steps(draft) {
          const [outer] = draft.split(loop.var, chunk)
          draft.reorder([outer, ...strand.loops.filter((l) => l !== loop).map((l) => l.var)])
          draft.step({ kind: 'rfactor', loop: { var: outer } })
        },
      },
    ]
  })

/** The longest reduction of a strand, and the length of a chunk, if its elements are too few for a GPU. */
function splitOf(strand: Strand, sizes: Sizes): { readonly loop: StrandLoop; readonly chunk: number } | null {
  const [write, ...others] = strand.writes
  if (write?.kind !== 'reduce' || write.targets.length !== 1 || others.length > 0) return null
  const sums = strand.loops.filter((l) => l.role === 'reduction' && l.reduce && l.needs.size === 0)
  if (sums.length === 0) return null
  const loop = longestLoop(sums, { sizes })
  const length = tripCount(loop, { sizes })
  const elements = elementCount(strand, { sizes })
  if (length === undefined || elements === undefined || length < MIN_LENGTH) return null
  const partition = partitionLoops(strand)
  const isProduct = partition !== undefined && reusedOperands(strand, partition).length > 0
  const blocks = Math.ceil(elements / (isProduct ? ELEMENTS.product : ELEMENTS.sum))
  const chunks = Math.min(BLOCKS / blocks, length / MIN_CHUNK)
  const chunk = Math.ceil(length / chunks / CHUNK_STEP) * CHUNK_STEP
  // The second nest reads what the first one writes, which must not exceed what the first one reads.
  const partials = 2 * elements * Math.ceil(length / chunk)
  return chunks < 2 || partials > operandCount(strand, sizes) ? null : { loop, chunk }
}

/** The number of elements of all operands, if each loop in their indices reads different ones. */
function operandCount({ loops, writes }: Strand, sizes: Sizes): number {
  const count = ({ index }: BufferAccess): number =>
    loops
      .filter((l) => index.some((e) => mentions(e, l.var)))
      .reduce((n, l) => n * (tripCount(l, { sizes }) ?? Infinity), 1)
  return accessesOf(writes).reduce((n, a) => (a.mode === 'read' ? n + count(a) : n), 0)
}
