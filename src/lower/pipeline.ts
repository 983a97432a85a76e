/**
 * Lowering as one flat list. Each pass states in its file the invariant it reaches; the order is here.
 */

import type { HardwareExtents } from '../analysis/integers/ranges.ts'
import { inPass } from '../ast/diagnostic.ts'
import type { Names } from '../ir/bound-names.ts'
import { namesOf } from '../ir/bound-names.ts'
import { int, THREAD_AXES } from '../ir/expr.ts'
import type { Kernel2, Launch, Plan } from '../ir/loops.ts'
import type { Kernel1 } from '../ir/stage1.ts'
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
import { makeLaunches } from './launches.ts'
import { endLongLoops } from './loop-ends.ts'
import { partitionLoops } from './loop-partitioning.ts'
import { unrollLoops } from './loop-unrolling.ts'
import { unswitch } from './loop-unswitching.ts'
import { markLostWrites } from './lost-writes.ts'
import { explicitCasts } from './operand-casts.ts'
import { versionPaddedCopies } from './padded-copy-versions.ts'
import { accumulateIntoPadding } from './padded-tiles.ts'
import { lowerToPositions as positionsOf } from './positions/index.ts'
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

interface LoopPass {
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

interface Context {
  readonly kernel: Kernel2
  readonly options: LowerOptions
  readonly names: Names
  /** Of the launch. */
  readonly extents: HardwareExtents
}

interface LaunchPass {
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
  { name: 'hoist', run: (b, c) => eliminateCommonSubexpressions(b, c.names, c.kernel.buffers) },
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

/** Called after every pass: for verifiers, timing, and `spt show`. */
export type Observer = (pass: string, result: Kernel2 | Plan) => void

/** Stage I → II. */
export const lowerToPositions = (kernel: Kernel1): Kernel2 =>
  inPass(placed('positions', kernel), () => positionsOf(kernel))

const placed = (pass: string, { name }: { readonly name: string }): string => `pass ${pass} of kernel ${name}`

/** Stage II → III as far as that may refuse. @throws SptError what `lowerToMemory` would */
export function checkLowering(kernel: Kernel2, options: LowerOptions): void {
  lowerThrough(LAUNCH_PASSES.slice(0, REFUSING), kernel, undefined, options)
}

const REFUSING = LAUNCH_PASSES.findIndex((p) => p.name === LAST_REFUSAL) + 1

/** Stage II → III. */
export const lowerToMemory = (kernel: Kernel2, observe?: Observer, options: LowerOptions = {}): Plan =>
  lowerThrough(LAUNCH_PASSES, kernel, observe, options)

function lowerThrough(
  launchPasses: readonly LaunchPass[],
  kernel: Kernel2,
  observe: Observer | undefined,
  options: LowerOptions,
): Plan {
  let loops = kernel
  for (const pass of LOOP_PASSES) {
    const before = loops
    loops = inPass(placed(pass.name, kernel), () => latestLoops(pass, before, options))
    observe?.(pass.name, loops)
  }
  const own = launchPasses.findIndex((p) => p.ofTarget)
  const common = own < 0 ? launchPasses : launchPasses.slice(0, own)
  const { reached, names } = latestLaunches(common, loops, options, observe)
  let at = reached[common.length]!
  for (const pass of launchPasses.slice(common.length)) {
    const before = at
    at = inPass(placed(pass.name, kernel), () => after(before, pass, { options, names }))
    observe?.(pass.name, at.plan)
  }
  return at.plan
}

/** What each pass on loops made latest: targets differ in few, and a kernel is lowered for one after the other. */
const made = new Map<
  LoopPass,
  { readonly run: LoopPass['run']; readonly before: Kernel2; readonly loops: Kernel2 }
>()

function latestLoops(pass: LoopPass, before: Kernel2, options: LowerOptions): Kernel2 {
  const known = made.get(pass)
  if (known?.before === before && known.run === pass.run) return known.loops
  const loops = pass.run(before, options)
  if (!pass.ofTarget) made.set(pass, { run: pass.run, before, loops })
  return loops
}

/** A plan after a pass, with the kernel as its buffers are by then. */
interface Reached {
  readonly pass: string
  readonly plan: Plan
  readonly kernel: Kernel2
}

/** A plan after `launches` and each of `runs`, none of which depends on other options than `lanes`. */
interface Launches {
  readonly loops: Kernel2
  readonly lanes: number
  readonly runs: readonly LaunchPass['run'][]
  readonly reached: readonly Reached[]
  /** What is taken after the last of them. */
  readonly names: Names
}
let latest: Launches | undefined

/** The plan after each of these passes; names are the caller's own, as they are after the last of those that ran. */
function latestLaunches(
  passes: readonly LaunchPass[],
  loops: Kernel2,
  options: LowerOptions,
  observe: Observer | undefined,
): Pick<Launches, 'reached' | 'names'> {
  const lanes = (options.together ? 1 : options.lanes) ?? 1
  const isKnown =
    latest?.loops === loops &&
    latest.lanes === lanes &&
    passes.every((p, k) => (latest!.runs[k] ?? p.run) === p.run)
  const known = isKnown ? latest! : begun(loops, lanes)
  const names = known.names.copy()
  for (const { pass, plan } of known.reached.slice(0, passes.length + 1)) observe?.(pass, plan)
  if (known.runs.length >= passes.length) return { reached: known.reached, names }
  const reached = [...known.reached]
  for (const pass of passes.slice(known.runs.length)) {
    const before = reached.at(-1)!
    const now = inPass(placed(pass.name, loops), () => after(before, pass, { options: {}, names }))
    reached.push(now)
    observe?.(pass.name, now.plan)
  }
  latest = { loops, lanes, runs: passes.map((p) => p.run), reached, names: names.copy() }
  return { reached, names }
}

function begun(loops: Kernel2, lanes: number): Launches {
  const names = namesOf(loops)
  const plan: Plan = {
    stage: 3,
    name: loops.name,
    params: loops.params,
    buffers: flatBuffers(loops.buffers),
    steps: inPass(placed('launches', loops), () => makeLaunches(loops, names, lanes)),
    ...(loops.capacities ? { capacities: loops.capacities } : {}),
    ...(loops.found ? { found: loops.found } : {}),
    ...(loops.lostWrites ? { lostWrites: loops.lostWrites } : {}),
    ...(loops.facts ? { facts: loops.facts } : {}),
  }
  return { loops, lanes, runs: [], reached: [{ pass: 'launches', plan, kernel: loops }], names }
}

function after({ plan, kernel }: Reached, pass: LaunchPass, c: Omit<Context, 'kernel' | 'extents'>): Reached {
  const steps = plan.steps.map((s) => (s.kind === 'launch' ? runPass(s, pass.run, { ...c, kernel }) : s))
  const next = pass.kernel ? pass.kernel(kernel) : kernel
  return {
    pass: pass.name,
    plan: { ...plan, steps, ...(pass.kernel ? { buffers: flatBuffers(next.buffers) } : {}) },
    kernel: next,
  }
}

const runPass = (l: Launch, run: (body: Body, c: Context) => Body, c: Omit<Context, 'extents'>): Launch => ({
  ...l,
  body: run(l.body, { ...c, extents: extentsOf(l) }),
})

const extentsOf = ({ grid, block }: Launch): HardwareExtents =>
  new Map([...grid, ...block.map(int)].map((e, k) => [THREAD_AXES[k]!, e]))

/** Stage I → III, unscheduled. */
export const lower = (kernel: Kernel1): Plan => lowerToMemory(lowerToPositions(kernel))
