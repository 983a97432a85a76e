/**
 * Automatic dispatch between formats for run-time zeros (micro-tile rules) and the dense kernel, for kernels without a schedule. The rules
 * are selected on the first data; each run decides on the device.
 */
import { dynamicTemporaries } from '../../analysis/sparsity/run-time-zeros.ts'
import { SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { binary, constant, variable } from '../../ir/expressions/expr.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { type ScheduleCandidate, scheduleCandidates } from '../auto-schedule/schedule-candidates.ts'
import { iterationsIn } from '../auto-schedule/software-adapter-schedule.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import { nonzeroShare, ratioOf, selectRules } from '../kernels/rules.ts'
import { deviceChoice, type RunBranch } from './device-choice.ts'
import type { Selection } from './dispatch-conditions.ts'
import type { LiveRatios } from './prepared-schedule.ts'
import { type AnyKernel, type Automatic, automaticSelection, decidedByRuns } from './schedules.ts'

/** Rules that are predicted to be faster than the dense kernel on the first data. */
export interface AutomaticRules {
  /** Their fill ratios, by name. */
  readonly live: LiveRatios
  /** The rules and the dense kernel in one plan; null if they cannot be combined. */
  nextTo(
    dense: ScheduleCandidate<AnyKernel>,
  ): { readonly kernel: AnyKernel; readonly selection: Selection } | null
}

/** The least number of executed statements for which the compilation of the rules pays off: some milliseconds on a CPU. */
const LEAST_STATEMENTS = 2 ** 22

/**
 * Measures rules for temporaries whose zeros depend on data, and for dense inputs of which most elements are zero. Null if the kernel has no
 * such tensors, if it is small, or if no rule is faster.
 */
export async function automaticRules(
  schedules: Automatic,
  device: Device,
  isExcluded: (kernel: AnyKernel) => boolean,
  inputs: RunInputs,
  sizes: ReadonlyMap<string, number>,
  tensors: Readonly<Record<string, Tensor>>,
): Promise<AutomaticRules | null> {
  const { base, source } = schedules
  if (!(iterationsIn(source, sizes, tensors) >= LEAST_STATEMENTS)) return null
  const temporaries = dynamicTemporaries(source)
  const isMostlyZero = (name: string): boolean => (nonzeroShare(tensors[name]) ?? 1) < 0.5
  const names = source.buffers.map((b) => b.name).filter((b) => temporaries.has(b) || isMostlyZero(b))
  if (names.length === 0) return null
  const found = await valueOrError(() => selectRules(base, device, inputs, {}, (b) => names.includes(b)))
  if (found instanceof SptError || found.selected.length === 0) return null
  const live = new Map(found.selected.map(ratioOf))
  const form = scheduleCandidates(found.kernel, device.kind, Object.fromEntries(sizes), 1)[0]
  const kernel = form?.kernel ?? found.kernel
  if (isExcluded(kernel)) return null
  const conditions = [...live.keys()].map((name, k) =>
    binary('lt', variable(name, 'f64'), constant(found.selected[k]!.limit, 'f64')),
  )
  const text = found.selected.map((r) => `${r.tile.dimension.tensor} as ${r.name} live in place`).join(', ')
  return {
    live,
    nextTo(dense) {
      const branches: readonly RunBranch[] = [
        { text, conditions, compilation: kernel.compilation },
        { text: dense.text || 'dense', conditions: [], compilation: dense.kernel.compilation },
      ]
      const combined = deviceChoice(base, 'auto', branches, live, device)
      if (typeof combined === 'string') return null
      const alternatives = branches.map((b) => {
        const reason = b.conditions.map((c) => printExpr1(c)).join(' and ') || 'otherwise'
        return automaticSelection({ text: b.text, reason }, source, [])
      })
      return { kernel: combined, selection: decidedByRuns(alternatives, source) }
    },
  }
}
