/**
 * The passes of lowering as flat lists. Each pass states in its file the invariant it reaches; the order is here.
 */

import type { HardwareExtents } from '../analysis/integers/ranges.ts'
import type { Names } from '../ir/bound-names.ts'
import type { Kernel2 } from '../ir/loops.ts'
import type { Body } from '../ir/tree.ts'
import { awaitInstructions } from './async-commit-wait.ts'
import { sinkCode } from './code-sinking.ts'
import { eliminateCommonSubexpressions } from './common-subexpressions.ts'
import { mergeCongruentRegisters } from './congruent-registers.ts'
import { eliminateConstantBranches } from './constant-branches.ts'
import { distributeCopies } from './cooperative-copies.ts'
import { reduceAcrossThreads } from './cross-thread-reduction.ts'
import { lowerInstructions } from './declared-instructions.ts'
import { versionEmptyLoops } from './empty-loop-blocks.ts'
import { inWords, readFields } from './expand-packed-loads.ts'
import { lowerReductions } from './expand-reductions.ts'
import { lowerSearches } from './expand-searches.ts'
import { shareExpressions, WRITTEN_OUT } from './expression-sharing.ts'
import { flatBuffers, flatten } from './flatten.ts'
import { versionFullTiles } from './full-tile-blocks.ts'
import { makeSearchesIncremental } from './incremental-search.ts'
import { markIndependentLoops } from './independent-loops.ts'
import { lowerDivisions } from './integer-division.ts'
import { endLongLoops } from './loop-ends.ts'
import { partitionLoops } from './loop-partitioning.ts'
import { unrollLoops } from './loop-unrolling.ts'
import { unswitch } from './loop-unswitching.ts'
import { markLostWrites } from './lost-writes.ts'
import { explicitCasts } from './operand-casts.ts'
import { versionPaddedCopies } from './padded-copy-versions.ts'
import { accumulateIntoPadding } from './padded-tiles.ts'
import { continuePrefixes } from './prefix-reductions.ts'
import { reassociateAddresses } from './reassociate-addresses.ts'
import { initializeReductions } from './reduction-initialization.ts'
import { removeRedundantAtomics } from './redundant-atomics.ts'
import { removeRedundantInitialization } from './redundant-initialization.ts'
import { promote } from './scalar-promotion.ts'
import { replaceByScalars } from './scalar-replacement.ts'
import { accumulateSegments } from './segmented-reduction.ts'
import { unswitchSelections } from './select-unswitching.ts'
import { visitSetBits } from './set-bits.ts'
import { pipelineLoops } from './software-pipelining.ts'
import { privatizeTiles } from './thread-private-dimensions.ts'
import { tightenLoops } from './tighten-bounds.ts'
import { versionVectors } from './vector-multiversioning.ts'
import { accumulateWide } from './wide-accumulators.ts'

/** What a target has that the plan may use. */
export interface LowerOptions {
  /** How many neighbouring threads can exchange registers, a power of two; 1 (the default) where none can. */
  readonly lanes?: number | undefined
  /** They can only where all threads of the block do. */
  readonly together?: boolean | undefined
  /** Elements that a loop combines into are kept in registers, which are no less precise than memory. */
  readonly promote?: boolean | undefined
}

export interface LoopPass {
  readonly name: string
  readonly run: (k: Kernel2, options: LowerOptions) => Kernel2
  /** Whether what it makes depends on the options. */
  readonly ofTarget?: true
}

/** Stage II → Stage II. */
export const LOOP_PASSES: readonly LoopPass[] = [
  { name: 'independent', run: markIndependentLoops },
  { name: 'whole-updates', run: removeRedundantInitialization },
  { name: 'plain-updates', run: removeRedundantAtomics },
  { name: 'accumulate', run: accumulateWide },
  { name: 'across-threads', run: reduceAcrossThreads, ofTarget: true },
  { name: 'segments', run: accumulateSegments },
  { name: 'cooperate', run: distributeCopies },
  { name: 'padded-tiles', run: accumulateIntoPadding },
  { name: 'place-init', run: initializeReductions },
  { name: 'prefixes', run: continuePrefixes },
  { name: 'advance', run: makeSearchesIncremental },
  { name: 'lost-writes', run: markLostWrites },
  { name: 'whole-blocks', run: versionFullTiles },
  { name: 'tighten', run: tightenLoops },
  { name: 'partition', run: partitionLoops },
  { name: 'ends', run: endLongLoops, ofTarget: true },
  { name: 'set-bits', run: visitSetBits, ofTarget: true },
  { name: 'empty-loops', run: versionEmptyLoops },
  { name: 'pipeline', run: pipelineLoops },
  { name: 'asynchronous', run: awaitInstructions },
  { name: 'whole-copies', run: versionPaddedCopies },
]

export interface Context {
  readonly kernel: Kernel2
  readonly options: LowerOptions
  readonly names: Names
  /** Of the launch. */
  readonly extents: HardwareExtents
}

export interface LaunchPass {
  readonly name: string
  readonly run: (body: Body, c: Context) => Body
  /** What the kernel's buffers are from then on. */
  readonly kernel?: (k: Kernel2) => Kernel2
  /** Whether what it makes depends on the options. */
  readonly ofTarget?: true
}

/** On the body of each launch, once it has launches. */
export const LAUNCH_PASSES: readonly LaunchPass[] = [
  { name: 'private', run: (b) => privatizeTiles(b) },
  { name: 'share', run: (b, c) => shareExpressions(b, c.kernel.buffers, c.names) },
  { name: 'instructions', run: (b, c) => lowerInstructions(b, c.kernel, c.names) },
  { name: 'fields', run: (b, c) => readFields(b, c.kernel.buffers), kernel: inWords },
  { name: 'flatten', run: (b, c) => flatten(b, c.kernel.buffers) },
  { name: 'reductions', run: (b, c) => lowerReductions(b, c.names) },
  { name: 'versions', run: (b, c) => versionVectors(b, c.kernel, c.names) },
  { name: 'selections', run: (b) => unswitchSelections(b) },
  { name: 'unroll', run: (b, c) => unrollLoops(b, c.names) },
  { name: 'branches', run: (b, c) => eliminateConstantBranches(b, c.kernel.facts) },
  { name: 'unswitch', run: (b, c) => unswitch(b, c.names) },
  { name: 'scalars', run: (b, c) => replaceByScalars(b, c.names) },
  { name: 'congruent', run: (b, c) => mergeCongruentRegisters(b, c.names) },
  { name: 'addresses', run: (b) => reassociateAddresses(b) },
  { name: 'divisions', run: (b, c) => lowerDivisions(b, c.kernel, c.extents) },
  { name: 'casts', run: (b, c) => explicitCasts(b, c.kernel.buffers) },
  {
    // Flooring mentions what is divided up to three times. Nobody looks at how positions hang together any more.
    name: 'share-divisions',
    run: (b, { kernel: k, names, extents }) => {
      const shared = shareExpressions(b, flatBuffers(k.buffers), names, WRITTEN_OUT)
      // What keeps reads within their arrays mentions lengths, which may be quotients of sizes.
      return lowerDivisions(shared, k, extents)
    },
  },
  { name: 'hoist', run: (b, c) => eliminateCommonSubexpressions(b, c.names, c.kernel.buffers, c.extents) },
  {
    name: 'promote',
    run: (b, c) => (c.options.promote ? promote(b, flatBuffers(c.kernel.buffers), c.names) : b),
    ofTarget: true,
  },
  { name: 'searches', run: (b, c) => lowerSearches(b, c.names) },
  { name: 'sink', run: (b, c) => sinkCode(b, c.names) },
]

/** The last pass that may refuse a kernel, as may all before it: what comes after makes the same plan faster. */
export const LAST_REFUSAL = 'instructions'

/** All passes from Stage I to Stage III, in order. */
export const PASSES: readonly string[] = [
  'positions',
  ...LOOP_PASSES.map((p) => p.name),
  'launches',
  ...LAUNCH_PASSES.map((p) => p.name),
]
