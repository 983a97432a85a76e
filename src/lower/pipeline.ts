/** Lowering: the passes of `passes.ts` one after the other, as far as their results are not there from the last time. */

import type { HardwareExtents } from '../analysis/integers/ranges.ts'
import { inPass } from '../ast/diagnostic.ts'
import type { Names } from '../ir/bound-names.ts'
import { namesOf } from '../ir/bound-names.ts'
import { int, THREAD_AXES } from '../ir/expr.ts'
import type { Kernel2, Launch, Plan } from '../ir/loops.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Body } from '../ir/tree.ts'
import { flatBuffers } from './flatten.ts'
import { makeLaunches } from './launches.ts'
import {
  type Context,
  LAST_REFUSAL,
  LAUNCH_PASSES,
  type LaunchPass,
  LOOP_PASSES,
  type LoopPass,
  type LowerOptions,
} from './passes.ts'
import { lowerToPositions as positionsOf } from './positions/index.ts'

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
