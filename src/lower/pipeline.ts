/** The pass pipeline: runs the passes of `passes.ts` in order, and reuses the results of the previous lowering. */

import type { HardwareExtents } from '../analysis/integers/ranges.ts'
import { inPass } from '../ast/diagnostics/diagnostic.ts'
import { type Coroutine, runSync } from '../ast/work.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { type Names, namesOf } from '../ir/expressions/bound-names.ts'
import { int, THREAD_AXES } from '../ir/expressions/expr.ts'
import { memoize } from '../ir/memoize.ts'
import type { Kernel2, Kernel3, Launch } from '../ir/statements/loops.ts'
import { outlineLaunches } from './launches/launch-outlining.ts'
import { flatBuffers } from './memory/buffer-flattening.ts'
import type { LaunchPass, LowerOptions } from './passes.ts'
import { LAST_REJECTING_PASS, LAUNCH_OUTLINING, LAUNCH_PASSES, LOOP_PASSES, POSITIONS } from './passes.ts'
import { lowerToPositions as positionsOf } from './positions/index.ts'

/** Called after every pass, by verifiers, timers and `spt show`. */
export type Observer = (pass: string, result: Kernel2 | Kernel3) => void

/** Lowers a kernel from Stage I (coordinates) to Stage II (loops over positions). */
export const lowerToPositions = (kernel: Kernel1): Kernel2 =>
  inPass(passTitle(POSITIONS, kernel), () => positionsOf(kernel))

const passTitle = (pass: string, { name }: { readonly name: string }): string =>
  `pass ${pass} of kernel ${name}`

/** Runs the passes of Stage II → III that may reject a kernel. @throws SptError as `lowerToMemory` */
export function checkLowering(kernel: Kernel2, options: LowerOptions): void {
  runSync(lowerThrough(LAUNCH_PASSES.slice(0, REJECTING), kernel, undefined, options))
}

const REJECTING = LAUNCH_PASSES.findIndex((p) => p.name === LAST_REJECTING_PASS) + 1

/** Lowers a kernel from Stage II (loops) to Stage III (launches); `observe` is called after every pass. */
export const lowerToMemory = (kernel: Kernel2, observe?: Observer, options: LowerOptions = {}): Kernel3 =>
  runSync(loweringSteps(kernel, observe, options))

/** `lowerToMemory`, with a step for each pass. */
export const loweringSteps = (
  kernel: Kernel2,
  observe: Observer | undefined,
  options: LowerOptions,
): Coroutine<Kernel3> => lowerThrough(LAUNCH_PASSES, kernel, observe, options)

/** Loop nests, or the plan that launch outlining made of them. */
interface State {
  readonly kernel: Kernel2
  readonly plan?: Kernel3
  /** Names in use. */
  readonly names?: Names
}

const beginning = memoize((kernel: Kernel2): State => ({ kernel }))

function* lowerThrough(
  launchPasses: readonly LaunchPass[],
  kernel: Kernel2,
  observe: Observer | undefined,
  options: LowerOptions,
): Coroutine<Kernel3> {
  let state = beginning(kernel)
  function* advance(pass: Cached, next: (before: State) => State): Coroutine<void> {
    yield
    state = inPass(passTitle(pass.name, kernel), () => latest(pass, state, next))
    observe?.(pass.name, state.plan ?? state.kernel)
  }
  for (const pass of LOOP_PASSES)
    yield* advance(pass, (before) => {
      const loops = pass.run(before.kernel, options)
      return loops === before.kernel ? before : { kernel: loops }
    })
  const lanes = (options.together ? 1 : options.lanes) ?? 1
  yield* advance({ name: LAUNCH_OUTLINING, run: lanes }, ({ kernel: loops }) => outlined(loops, lanes))
  for (const pass of launchPasses) yield* advance(pass, (before) => applyPass(before, pass, options))
  return state.plan!
}

/** A pass, or another description of a step between two states. */
type Cached = Pick<LaunchPass, 'name' | 'dependsOnTarget'> & { readonly run: unknown }

/**
 * The latest result of each pass that does not depend on the target: a kernel is lowered for several targets in sequence. Results after
 * the last pass that does depend on it are of no use to other targets.
 */
const latestResults = new Map<
  string,
  { readonly run: unknown; readonly before: State; readonly after: State }
>()

function latest({ name, run, dependsOnTarget }: Cached, before: State, next: (s: State) => State): State {
  const cached = latestResults.get(name)
  if (cached?.before === before && cached.run === run) return cached.after
  const after = next(before)
  if (!dependsOnTarget) latestResults.set(name, { run, before, after })
  return after
}

function outlined(loops: Kernel2, lanes: number): State {
  const names = namesOf(loops)
  const { name, params, runtimeLists, lostWrites, facts } = loops
  const plan: Kernel3 = {
    stage: 3,
    name,
    params,
    buffers: flatBuffers(loops.buffers),
    steps: outlineLaunches(loops, names, lanes),
    ...(runtimeLists && { runtimeLists }),
    ...(lostWrites && { lostWrites }),
    ...(facts && { facts }),
  }
  return { kernel: loops, plan, names }
}

function applyPass({ plan, kernel, names: before }: State, pass: LaunchPass, options: LowerOptions): State {
  const names = before!.copy()
  const steps = plan!.steps.map((s) =>
    s.kind === 'launch'
      ? { ...s, body: pass.run(s.body, { options, names, kernel, extents: extentsOf(s) }) }
      : s,
  )
  const next = pass.kernel ? pass.kernel(kernel) : kernel
  const buffers = pass.kernel ? flatBuffers(next.buffers) : plan!.buffers
  return { kernel: next, plan: { ...plan!, steps, buffers }, names }
}

const extentsOf = ({ grid, block }: Launch): HardwareExtents =>
  new Map([...grid, ...block.map(int)].map((e, k) => [THREAD_AXES[k]!, e]))

/** Lowers an unscheduled kernel from Stage I to Stage III. */
export const lower = (kernel: Kernel1): Kernel3 => lowerToMemory(lowerToPositions(kernel))
