/** Compilation of kernels for a device: with their steps, under the auto-scheduler, or with a dispatch. */
import { SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { expectFields, FLAG, FUNCTION, SIGNAL } from '../../ast/diagnostics/value-kinds.ts'
import { Work, type WorkOptions } from '../../ast/work.ts'
import { bindPlan } from '../../run/bind/bind-plan.ts'
import type { Device } from '../../runtime/device.ts'
import type { AutoSchedulable } from '../auto-schedule/format-candidates.ts'
import { isUnscheduled, scheduleCandidates } from '../auto-schedule/schedule-candidates.ts'
import { callerStatistics } from '../dispatch/input-facts.ts'
import { KernelFamily } from '../dispatch/kernel-family.ts'
import { type AnyKernel, automaticSelection, type KernelDispatch } from '../dispatch/schedules.ts'
import { checkSizes, isRecord } from '../inputs/argument-checks.ts'
import { refuseStatistics } from '../inputs/bound-inputs.ts'
import { Built } from './built.ts'
import { compileSteps } from './compile-code.ts'
import { checkOrdered } from './unordered-sums.ts'

export interface BuildOptions extends WorkOptions {
  /**
   * `false`: exactly the applied steps, without a dispatch `auto` or the auto-scheduler. Nests on which no thread is bound run as
   * `parallel()`, if the device permits. Default true.
   */
  readonly auto?: boolean
  /**
   * `true`: equal inputs give equal bits in every run. Schedules with floating-point sums in no fixed order are not selected, and a
   * fixed schedule with such a sum is rejected (`choose/unordered-sum`). Default false.
   */
  readonly deterministic?: boolean
  /**
   * Sizes by name. If a dispatch needs only sizes, the schedule is selected at once, for every later binding. Otherwise, the schedules that
   * it may select for these sizes are compiled. Data of other sizes can be bound, too.
   */
  readonly sizes?: Readonly<Record<string, number>>
  /** Values of statistics for a dispatch, as in `BindOptions`, together with `sizes`; the schedule is then selected at once. */
  readonly statistics?: Readonly<Record<string, number>>
}

/** `open`: the dispatch that selects a schedule for each binding. */
export async function buildKernel(
  kernel: AnyKernel,
  open: KernelDispatch | null,
  device: Device,
  options: BuildOptions,
): Promise<Built> {
  const RECORD = { holds: isRecord, expected: 'numbers by name' }
  const more = { signal: SIGNAL, onProgress: FUNCTION }
  expectFields('build', options, {
    auto: FLAG,
    deterministic: FLAG,
    sizes: RECORD,
    statistics: RECORD,
    ...more,
  })
  const { auto = true, deterministic = false, ...facts } = options
  const work = new Work(options)
  const { source } = open ?? kernel.compilation
  checkSizes(source, facts.sizes)
  if (!(auto && open)) refuseStatistics(source, facts.statistics ?? {})
  if (!auto) {
    const code = await compileOrdered(kernel, device, deterministic, work)
    return Built.fixed(code)
  }
  return open
    ? buildDispatch({ ...open, deterministic }, device, facts, work)
    : (await buildDefault(kernel, device, options, work)).built
}

/** Compiles the schedule that a dispatch selects without data, if conditions need no data. */
async function buildDispatch(
  open: KernelDispatch,
  device: Device,
  { sizes, statistics = {}, signal, onProgress }: BuildOptions,
  work: Work,
): Promise<Built> {
  const hasStatistics = callerStatistics(open.choice, statistics).size > 0
  const schedules = new KernelFamily(device, { ...open, sizes: sizes && new Map(Object.entries(sizes)) })
  const family = new Built(schedules)
  const released = (): void => family.release()
  // Runs measure these; until then, no schedule is preferred.
  if (![...open.choice.statistics.values()].some((s) => s.kind === 'fill_ratio' && s.live)) {
    const choosing = () =>
      work.wait(family.choose({ ...sizes }, { statistics, signal, onProgress }), released)
    const chosen = await valueOrError(choosing)
    if (chosen instanceof SptError) {
      if (hasStatistics || !needsData(chosen)) throw chosen
    } else if (sizes || hasStatistics) return chosen
  }
  // On a software adapter, the default dispatch runs small data without its schedules, whose compilation takes seconds.
  if (open.isDefault && device.isSoftware) return family
  try {
    await work.wait(schedules.compileAll(work), released)
  } catch (e) {
    released()
    throw e
  }
  return family
}

/** True for an error of a selection that data of a binding can resolve. */
export const needsData = ({ diagnostics }: SptError): boolean =>
  diagnostics.every(({ code }) => code === 'bind/missing-size' || code === 'choose/unknown-statistic')

async function compileOrdered(kernel: AnyKernel, device: Device, deterministic: boolean, work: Work) {
  const code = await compileSteps<AnyKernel>(kernel, device, work)
  return deterministic ? checkOrdered(code) : code
}

/** Compiles a kernel; without a schedule, as far as possible without data. Returns also the kernel under that schedule. */
export async function buildDefault<K extends AnyKernel & AutoSchedulable<K>>(
  kernel: K,
  device: Device,
  { deterministic = false, sizes }: BuildOptions = {},
  work: Work = new Work(),
): Promise<{ readonly kernel: K; readonly built: Built }> {
  const compile = (k: K) => compileOrdered(k, device, deterministic, work)
  if (!isUnscheduled(kernel.compilation)) return { kernel, built: Built.fixed(await compile(kernel)) }
  // On GPUs, candidates are compiled once sizes are known, because code for unknown sizes has a version per remainder.
  const form =
    device.kind === 'cpu' || sizes ? scheduleCandidates(kernel, device.kind, sizes, 1)[0] : undefined
  const guess = form?.kernel
  // Lowering may reject the candidate, but accept the unscheduled kernel.
  const compiled = guess && (await valueOrError(() => compile(guess)))
  const early =
    compiled && !(compiled instanceof SptError)
      ? { kernel: guess, code: compiled }
      : { kernel, code: await compile(kernel) }
  // Lists and sets of formats are not inputs of the kernel as declared, on which candidates are compared.
  const { source } = kernel.compilation
  if (sizes || bindPlan(kernel.compilation.kernel).operands.size > 0) {
    const isNotable = form !== undefined && form.plain.length > 0 && early.kernel === guess
    const selection = isNotable ? automaticSelection(form, source, []) : null
    return { kernel: early.kernel, built: Built.fixed(early.code, selection) }
  }
  const schedules = { kind: 'automatic', base: kernel, source, deterministic, ...early } as const
  return { kernel: early.kernel, built: new Built(new KernelFamily(device, schedules)) }
}
