/** Comparison of the schedules of a branch: by predicted time, and by the order of sums. */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { predictedTimes } from '../auto-schedule/predicted-times.ts'
import type { Candidate } from '../built/candidates.ts'
import { sumsOf, sumsText } from '../built/unordered-sums.ts'
import { kindOf, modelFor } from './device-facts.ts'
import type { Selection } from './dispatch-conditions.ts'
import type { AnyKernel, Schedules } from './schedules.ts'

export interface Selected extends Pick<Candidate, 'schedule'> {
  readonly selection: Selection
}

/** The schedules of a kernel on a device. */
export interface SchedulesOn {
  readonly device: Device
  readonly schedules: Schedules
}

/** The data by which times are predicted. */
interface Data {
  readonly sparse: Readonly<Record<string, Tensor>>
  /** List and set arguments of formats. */
  readonly beside: Readonly<Record<string, Tensor>>
  readonly sizes: ReadonlyMap<string, number>
}

/** The schedule with the shortest predicted time; the first if there are no predictions. */
export function fastestOf(
  { source, device }: { readonly source: Kernel1; readonly device: Device },
  legal: readonly Selected[],
  { sparse, beside, sizes }: Data,
): Selected {
  const model = modelFor(device)!
  const kernels = legal.map((s) => s.schedule.compilation)
  const times = predictedTimes(model, kindOf(device), source, sparse, sizes, kernels, beside)
  const order = legal
    .map((s, k) => ({ ...s, milliseconds: times[k] ?? Number.POSITIVE_INFINITY }))
    .sort((a, b) => (a.milliseconds === b.milliseconds ? 0 : a.milliseconds - b.milliseconds))
  const { schedule, selection } = order[0]!
  const predictions = order.flatMap(({ selection: { text }, milliseconds }) =>
    Number.isFinite(milliseconds) ? [{ text, milliseconds }] : [],
  )
  const costModel = predictions.length > 0 ? model.chip : null
  return { schedule, selection: { ...selection, predictions, costModel } }
}

/** The reason for which `deterministic` excludes a schedule; `null` if its sums have a fixed order, or if lowering rejects it. */
export function exclusionOf(schedule: AnyKernel, { schedules, device }: SchedulesOn): string | null {
  if (schedules.kind === 'fixed' || !schedules.deterministic) return null
  const sums = resultOrError(() => sumsOf(schedule, device))
  return sums instanceof SptError || sums.length === 0 ? null : sumsText(sums)
}
