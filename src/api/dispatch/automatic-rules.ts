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
import { ratioOf, selectRules } from '../kernels/rules.ts'
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

/** Executions of statements from which on the compilation of the rules pays off: some milliseconds on a CPU. */
const MOST_PLAIN = 2 ** 22

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
  const temporaries = dynamicTemporaries(source)
  const isWanted = (name: string): boolean => temporaries.has(name) || isMostlyZero(tensors[name])
  if (!source.buffers.some((b) => isWanted(b.name))) return null
  if (!(iterationsIn(source, sizes, tensors) >= MOST_PLAIN)) return null
  const found = await valueOrError(() => selectRules(base, device, inputs, {}, isWanted))
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

function isMostlyZero(t: Tensor | undefined): boolean {
  if (t?.kind !== 'dense' || !t.values) return false
  let zeros = 0
  for (const x of t.values) if (!x) zeros++
  return 2 * zeros > t.values.length
}
