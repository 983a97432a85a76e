/** The pass pipeline: runs the passes of `passes.ts` in order, and reuses the results of the previous lowering. */

import type { HardwareExtents } from '../analysis/integers/ranges.ts'
import { inPass } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import type { Names } from '../ir/expressions/bound-names.ts'
import { namesOf } from '../ir/expressions/bound-names.ts'
import { int, THREAD_AXES } from '../ir/expressions/expr.ts'
import type { Kernel2, Launch, Plan } from '../ir/statements/loops.ts'
import type { Body } from '../ir/statements/tree.ts'
import { outlineLaunches } from './launches/launch-outlining.ts'
import { flatBuffers } from './memory/buffer-flattening.ts'
import {
  type Context,
  LAST_REJECTING_PASS,
  LAUNCH_OUTLINING,
  LAUNCH_PASSES,
  type LaunchPass,
  LOOP_PASSES,
  type LoopPass,
  type LowerOptions,
  POSITIONS,
} from './passes.ts'
import { lowerToPositions as positionsOf } from './positions/index.ts'

/** Called after every pass, by verifiers, timers and `spt show`. */
export type Observer = (pass: string, result: Kernel2 | Plan) => void

/** Lowers a kernel from Stage I (coordinates) to Stage II (loops over positions). */
export const lowerToPositions = (kernel: Kernel1): Kernel2 =>
  inPass(passTitle(POSITIONS, kernel), () => positionsOf(kernel))

const passTitle = (pass: string, { name }: { readonly name: string }): string =>
  `pass ${pass} of kernel ${name}`

/** Runs the passes of Stage II → III that may reject a kernel. @throws SptError as `lowerToMemory` */
export function checkLowering(kernel: Kernel2, options: LowerOptions): void {
  lowerThrough(LAUNCH_PASSES.slice(0, REJECTING), kernel, undefined, options)
}

const REJECTING = LAUNCH_PASSES.findIndex((p) => p.name === LAST_REJECTING_PASS) + 1

/** Lowers a kernel from Stage II (loops) to Stage III (launches); `observe` is called after every pass. */
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
    loops = inPass(passTitle(pass.name, kernel), () => latestLoops(pass, before, options))
    observe?.(pass.name, loops)
  }
  const firstTargetPass = launchPasses.findIndex((p) => p.dependsOnTarget)
  const common = firstTargetPass < 0 ? launchPasses : launchPasses.slice(0, firstTargetPass)
  const { reached, names } = latestLaunches(common, loops, options, observe)
  let at = reached[common.length]!
  for (const pass of launchPasses.slice(common.length)) {
    const before = at
    at = inPass(passTitle(pass.name, kernel), () => applyPass(before, pass, { options, names }))
    observe?.(pass.name, at.plan)
  }
  return at.plan
}

/** The latest result of each loop pass. A kernel is lowered for several targets in sequence, and few passes depend on the target. */
const latestResults = new Map<
  LoopPass,
  { readonly run: LoopPass['run']; readonly before: Kernel2; readonly loops: Kernel2 }
>()

function latestLoops(pass: LoopPass, before: Kernel2, options: LowerOptions): Kernel2 {
  const cached = latestResults.get(pass)
  if (cached?.before === before && cached.run === pass.run) return cached.loops
  const loops = pass.run(before, options)
  if (!pass.dependsOnTarget) latestResults.set(pass, { run: pass.run, before, loops })
  return loops
}

/** A plan after a pass, with the kernel whose buffers that pass declares. */
interface Reached {
  readonly pass: string
  readonly plan: Plan
  readonly kernel: Kernel2
}

/** A plan after launch outlining and each of `runs`, which depend on no option except `lanes`. */
interface Launches {
  readonly loops: Kernel2
  readonly lanes: number
  readonly runs: readonly LaunchPass['run'][]
  readonly reached: readonly Reached[]
  /** Names in use after the last pass of `runs`. */
  readonly names: Names
}
let latest: Launches | undefined

/**
 * Returns the plans after outlining and after each of `passes`, and a copy of the names in use after the last pass. The latest result is
 * reused.
 */
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
  const progress = isKnown ? latest! : outlined(loops, lanes)
  const names = progress.names.copy()
  for (const { pass, plan } of progress.reached.slice(0, passes.length + 1)) observe?.(pass, plan)
  if (progress.runs.length >= passes.length) return { reached: progress.reached, names }
  const reached = [...progress.reached]
  for (const pass of passes.slice(progress.runs.length)) {
    const before = reached.at(-1)!
    const now = inPass(passTitle(pass.name, loops), () => applyPass(before, pass, { options: {}, names }))
    reached.push(now)
    observe?.(pass.name, now.plan)
  }
  latest = { loops, lanes, runs: passes.map((p) => p.run), reached, names: names.copy() }
  return { reached, names }
}

function outlined(loops: Kernel2, lanes: number): Launches {
  const names = namesOf(loops)
  const plan: Plan = {
    stage: 3,
    name: loops.name,
    params: loops.params,
    buffers: flatBuffers(loops.buffers),
    steps: inPass(passTitle(LAUNCH_OUTLINING, loops), () => outlineLaunches(loops, names, lanes)),
    ...(loops.capacities ? { capacities: loops.capacities } : {}),
    ...(loops.runtimeLists ? { runtimeLists: loops.runtimeLists } : {}),
    ...(loops.lostWrites ? { lostWrites: loops.lostWrites } : {}),
    ...(loops.facts ? { facts: loops.facts } : {}),
  }
  return { loops, lanes, runs: [], reached: [{ pass: LAUNCH_OUTLINING, plan, kernel: loops }], names }
}

function applyPass(
  { plan, kernel }: Reached,
  pass: LaunchPass,
  c: Omit<Context, 'kernel' | 'extents'>,
): Reached {
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

/** Lowers an unscheduled kernel from Stage I to Stage III. */
export const lower = (kernel: Kernel1): Plan => lowerToMemory(lowerToPositions(kernel))
