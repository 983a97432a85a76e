/**
 * The pass pipeline of lowering, as flat lists in order. Each file states the invariant that its pass establishes.
 *
 * Naming: the name of a pass is a noun phrase of the field (`loop-partitioning`). Its function contains the same words in verb form
 * (`partitionLoops`). A file has the name of its pass, or of the first of the passes that share its mechanism.
 */

import type { HardwareExtents } from '../analysis/integers/ranges.ts'
import type { Names } from '../ir/expressions/bound-names.ts'
import type { Kernel2 } from '../ir/statements/loops.ts'
import type { Body } from '../ir/statements/tree.ts'
import { reassociateAddresses } from './expressions/address-reassociation.ts'
import { sinkCode } from './expressions/code-sinking.ts'
import { eliminateCommonSubexpressions } from './expressions/common-subexpressions.ts'
import { insertQuotientLets, lowerIntegerDivision } from './expressions/integer-division.ts'
import { insertLets } from './expressions/let-insertion.ts'
import { castOperands } from './expressions/operand-casts.ts'
import { selectInstructions } from './instructions/instruction-selection.ts'
import { makeSearchesIncremental } from './loops/incremental-search.ts'
import { markIndependentLoops, removeRedundantAtomics } from './loops/independent-loops.ts'
import { unrollLoops } from './loops/loop-unrolling.ts'
import { expandSearches } from './loops/search-expansion.ts'
import { iterateSetBits } from './loops/set-bit-iteration.ts'
import {
  expandPackedLoads,
  flatBuffers,
  flattenBuffers,
  packedBuffersAsWords,
} from './memory/buffer-flattening.ts'
import { mergeCongruentRegisters } from './memory/congruent-registers.ts'
import { makeCopiesCooperative } from './memory/cooperative-copies.ts'
import { markLostWrites } from './memory/lost-writes.ts'
import { removeRedundantInitialization } from './memory/redundant-initialization.ts'
import { promoteToScalars } from './memory/scalar-promotion.ts'
import { privatizeTiles, replaceArraysByScalars } from './memory/tile-privatization.ts'
import { removeUnreadBuffers } from './memory/unread-buffers.ts'
import { insertAsyncWaits } from './pipelining/async-wait-insertion.ts'
import { injectSoftwarePipelines } from './pipelining/software-pipelining.ts'
import { reduceAcrossThreads } from './reduce/cross-thread-reduction.ts'
import { simplifyPrefixReductions } from './reduce/prefix-reductions.ts'
import { expandReductions } from './reduce/reduction-expansion.ts'
import { initializeReductions } from './reduce/reduction-initialization.ts'
import { reduceSegments } from './reduce/segmented-reduction.ts'
import { widenAccumulators } from './reduce/wide-accumulators.ts'
import { eliminateConstantBranches } from './specialise/constant-branches.ts'
import { versionEmptyLoops } from './specialise/empty-loop-versioning.ts'
import { partitionLoops, versionFullTiles } from './specialise/loop-partitioning.ts'
import { tightenLoopBounds, trimLoops } from './specialise/loop-trimming.ts'
import { unswitchLoops, unswitchSelects } from './specialise/loop-unswitching.ts'
import { versionPaddedCopies } from './specialise/padded-copy-versioning.ts'
import { accumulateIntoPadding } from './specialise/padding-accumulation.ts'
import { versionVectors } from './specialise/vector-versioning.ts'

export interface LowerOptions {
  /** Width of the warp or subgroup whose lanes can exchange registers, a power of two; 1 (the default) without shuffles. */
  readonly lanes?: number | undefined
  /** Lanes can exchange registers only in code that all threads of the block execute. */
  readonly together?: boolean | undefined
  /** Accumulators of loops are kept in registers, which are at least as precise as memory. */
  readonly promote?: boolean | undefined
}

export interface LoopPass {
  readonly name: string
  readonly run: (k: Kernel2, options: LowerOptions) => Kernel2
  /** Set if the result depends on the options. */
  readonly dependsOnTarget?: true
}

/** The passes from Stage II to Stage II (loop nests), in order. */
export const LOOP_PASSES: readonly LoopPass[] = [
  { name: 'unread-buffers', run: removeUnreadBuffers },
  { name: 'independent-loops', run: markIndependentLoops },
  { name: 'redundant-initialization', run: removeRedundantInitialization },
  { name: 'redundant-atomics', run: removeRedundantAtomics },
  { name: 'wide-accumulators', run: widenAccumulators },
  { name: 'cross-thread-reduction', run: reduceAcrossThreads, dependsOnTarget: true },
  { name: 'segmented-reduction', run: reduceSegments },
  { name: 'cooperative-copies', run: makeCopiesCooperative },
  { name: 'padding-accumulation', run: accumulateIntoPadding },
  { name: 'reduction-initialization', run: initializeReductions },
  { name: 'prefix-reductions', run: simplifyPrefixReductions },
  { name: 'incremental-search', run: makeSearchesIncremental },
  { name: 'lost-writes', run: markLostWrites },
  { name: 'full-tile-versioning', run: versionFullTiles },
  { name: 'loop-bound-tightening', run: tightenLoopBounds },
  { name: 'loop-partitioning', run: partitionLoops },
  { name: 'loop-trimming', run: trimLoops, dependsOnTarget: true },
  { name: 'set-bit-iteration', run: iterateSetBits, dependsOnTarget: true },
  { name: 'empty-loop-versioning', run: versionEmptyLoops },
  { name: 'software-pipelining', run: injectSoftwarePipelines },
  { name: 'async-wait-insertion', run: insertAsyncWaits },
  { name: 'padded-copy-versioning', run: versionPaddedCopies },
]

interface Context {
  readonly kernel: Kernel2
  readonly options: LowerOptions
  readonly names: Names
  /** Extents of the grid and the block of the launch. */
  readonly extents: HardwareExtents
}

export interface LaunchPass {
  readonly name: string
  readonly run: (body: Body, c: Context) => Body
  /** Rewrites the declarations of the kernel's buffers. */
  readonly kernel?: (k: Kernel2) => Kernel2
  /** Set if the result depends on the options. */
  readonly dependsOnTarget?: true
}

/** Stage III → Stage III, on the body of each launch. */
export const LAUNCH_PASSES: readonly LaunchPass[] = [
  { name: 'tile-privatization', run: (b) => privatizeTiles(b) },
  { name: 'let-insertion', run: (b, c) => insertLets(b, c.kernel.buffers, c.names) },
  { name: 'instruction-selection', run: (b, c) => selectInstructions(b, c.kernel, c.names) },
  {
    name: 'packed-load-expansion',
    run: (b, c) => expandPackedLoads(b, c.kernel.buffers),
    kernel: packedBuffersAsWords,
  },
  { name: 'buffer-flattening', run: (b, c) => flattenBuffers(b, c.kernel.buffers) },
  { name: 'reduction-expansion', run: (b, c) => expandReductions(b, c.names) },
  { name: 'vector-versioning', run: (b, c) => versionVectors(b, c.kernel, c.names) },
  { name: 'select-unswitching', run: (b, c) => unswitchSelects(b, c.names) },
  { name: 'loop-unrolling', run: (b, c) => unrollLoops(b, c.names) },
  { name: 'constant-branches', run: (b, c) => eliminateConstantBranches(b, c.kernel.facts) },
  { name: 'loop-unswitching', run: (b, c) => unswitchLoops(b, c.names) },
  { name: 'scalar-replacement', run: (b, c) => replaceArraysByScalars(b, c.names) },
  { name: 'congruent-registers', run: (b, c) => mergeCongruentRegisters(b, c.names) },
  { name: 'address-reassociation', run: (b) => reassociateAddresses(b) },
  { name: 'integer-division', run: (b, c) => lowerIntegerDivision(b, c.kernel, c.extents) },
  { name: 'operand-casts', run: (b, c) => castOperands(b, c.kernel.buffers) },
  { name: 'quotient-let-insertion', run: (b, c) => insertQuotientLets(b, c.kernel, c.names, c.extents) },
  {
    name: 'common-subexpressions',
    run: (b, c) => eliminateCommonSubexpressions(b, c.names, c.kernel.buffers, c.extents),
  },
  {
    name: 'scalar-promotion',
    run: (b, c) => (c.options.promote ? promoteToScalars(b, flatBuffers(c.kernel.buffers), c.names) : b),
    dependsOnTarget: true,
  },
  { name: 'search-expansion', run: (b, c) => expandSearches(b, c.names) },
  { name: 'code-sinking', run: (b, c) => sinkCode(b, c.names) },
]

/** The last pass that may reject a kernel. Later passes only optimise the plan. */
export const LAST_REJECTING_PASS = 'instruction-selection'

/** Name of the lowering from Stage I (coordinates) to Stage II (loops over positions). */
export const POSITIONS = 'positions'
/** Name of the lowering from Stage II (loop nests) to Stage III (launches). */
export const LAUNCH_OUTLINING = 'launch-outlining'

/** All passes from Stage I to Stage III, in order. */
export const PASSES: readonly string[] = [
  POSITIONS,
  ...LOOP_PASSES.map((p) => p.name),
  LAUNCH_OUTLINING,
  ...LAUNCH_PASSES.map((p) => p.name),
]
