/** Plans that were read from JSON, on a device. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { allOrNone, startWork, type WorkOptions } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { bodyVisiting } from '../../ir/coordinates/stage1-tree.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { malformed } from '../../plan/codec.ts'
import { isFamily, type LoadableFamily, readFamily } from '../../plan/family-codec.ts'
import type { LaunchPlan } from '../../plan/launch-plan.ts'
import { readPlan } from '../../plan/read.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import { bindPlan, storedAxis } from '../../run/bind/bind-plan.ts'
import { loadOn } from '../../run/compile/program.ts'
import type { Device } from '../../runtime/device.ts'
import { Built } from '../built/built.ts'
import { CompiledCode } from '../built/code.ts'
import { Family } from '../built/schedule-family.ts'
import type { BranchCall, Branching } from '../dispatch/dispatch-conditions.ts'
import { formatOf } from '../dispatch/fill-ratio.ts'
import type { LoadedDispatch } from '../dispatch/schedules.ts'
import { statisticIn } from '../dispatch/statistics.ts'
import { checkDevice } from '../inputs/argument-checks.ts'

/** Implements `loadPlan`. Throws SptError `plan/…`, `device/compile`. */
export async function loadPlan(
  plan: Plan | PlanFamily,
  device: Device,
  options: WorkOptions = {},
): Promise<Built> {
  checkDevice(device)
  const work = startWork('loadPlan', options)
  const codeOf = async (p: LaunchPlan) => {
    await checkBinding(p.binding, new Set([...p.buffers, ...p.packed].map((b) => b.name)))
    work.begin('compile', p.kernel)
    return new CompiledCode(null, await work.wait(loadOn(device, p), (late) => late.release()))
  }
  if (!isFamily(plan)) return Built.fixed(await codeOf(readPlan(plan)))
  const family = readFamily(plan)
  await checkBinding(family.kernel, null)
  const dispatch = dispatchOf(family, await allOrNone(family.plans.map(codeOf)))
  return new Built(new Family(device, { ...dispatch, loaded: structuredClone(plan) }))
}

/**
 * Rejects declarations that violate the invariants of kernels over coordinates. `stored`: names of arrays in device memory; `null`: any.
 * Throws SptError `plan/malformed`.
 */
async function checkBinding(kernel: Kernel1, stored: ReadonlySet<string> | null): Promise<void> {
  const { verify1 } = await import('../../verifiers/stage1.ts')
  try {
    verify1({ ...kernel, body: bodyVisiting([]) })
    const { axes } = bindPlan(kernel)
    for (const b of kernel.reformats.flatMap((r) => r.buffers)) for (const a of b.axes) storedAxis(axes, a)
    for (const { name, role } of kernel.buffers)
      if (role === 'out' || role === 'inout') invariant(stored?.has(name) ?? true, `no buffer ${name}`)
  } catch (e) {
    malformed('binding', (e as Error).message, 'axes, buffers and formats that refer to each other')
  }
}

/** A family as a dispatch whose schedules are compiled. */
function dispatchOf(
  { kernel, schedule, statistics: written, branches }: LoadableFamily,
  codes: readonly CompiledCode[],
): Omit<LoadedDispatch, 'loaded'> {
  const span = { source: '', start: 0, end: 0 }
  const statistics = new Map([...written].map(([name, s]) => [name, statisticIn(s)]))
  const operands = [
    ...codes.flatMap(({ program }) => [...bindPlan(program.plan.binding).operands]),
    ...[...statistics.values()].flatMap((s) =>
      s.kind === 'fill_ratio' ? formatOf(s).given.map((g) => [g.name, g] as const) : [],
    ),
  ]
  const byCall = new Map<BranchCall, CompiledCode>()
  const choice: Branching = {
    kernel: kernel.name,
    name: schedule,
    params: [],
    device: new Map(),
    statistics,
    branches: branches.map(({ when, schedule: name, plan }) => {
      const call = { schedule: { name, params: [] }, args: [], span }
      byCall.set(call, codes[plan]!)
      return { conditions: when.map((expr) => ({ expr, text: printExpr1(expr), span })), calls: [call], span }
    }),
    span,
  }
  return {
    kind: 'dispatch',
    source: kernel,
    codes: byCall,
    used: new Map(operands.map(([name, { kind }]) => [name, { kind, tensor: null }])),
    choice,
    values: new Map(),
    text: schedule,
  }
}
