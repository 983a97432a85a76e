/** Schedules of a kernel on a device: a fixed one, those of the auto-scheduler, or the branches of a dispatch. */

import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { factText } from '../../ir/print/fact-text.ts'
import type { Fact } from '../../ir/statements/loops.ts'
import { brokenFact } from '../../plan/interpret.ts'
import type { LaunchPlan } from '../../plan/launch-plan.ts'
import type { PlanFamily } from '../../plan/schema.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { AutoSchedulable } from '../auto-schedule/format-candidates.ts'
import type { ScheduleCandidate } from '../auto-schedule/schedule-candidates.ts'
import type { CompiledCode } from '../built/code.ts'
import type { DeclaredInputs } from '../inputs/format-input-binding.ts'
import { type ErrorSources, withPlace } from '../programs/error-sources.ts'
import {
  type BranchCall,
  conjunction,
  type Decision,
  type DispatchCall,
  type Selection,
} from './dispatch-conditions.ts'

/** A kernel to which schedules can be applied. */
export interface AnyKernel extends AutoSchedulable<AnyKernel>, Pick<ErrorSources, 'sources'> {
  sequential(): AnyKernel
  schedule(name: string, ...args: (number | undefined)[]): AnyKernel
  live(buffer: string, format: AnyFormat, options: { readonly inPlace: boolean }): AnyKernel
  /** A kernel with the steps of a compilation. */
  compiledAs(c: Compilation): AnyKernel
}

export type Schedules = Fixed | Automatic | KernelDispatch | LoadedDispatch

interface Fixed {
  readonly kind: 'fixed'
  readonly code: CompiledCode
}

/** The auto-scheduler selects a schedule for each binding. */
export interface Automatic {
  readonly kind: 'automatic'
  /** The kernel without steps. */
  readonly base: AnyKernel
  /** The kernel as declared. */
  readonly source: Kernel1
  /** True: schedules with unordered sums are skipped. */
  readonly deterministic: boolean
  /**
   * The schedule without data, and its kernel: the first candidate on the CPU, `parallel()` on GPUs. It runs data that no candidate
   * accepts, such as ready-made parts of formats, and reports errors in the data.
   */
  readonly code: CompiledCode
  readonly kernel: AnyKernel
}

/** The conditions of branches select a schedule for each binding. */
export interface Dispatch extends DispatchCall {
  readonly kind: 'dispatch'
  readonly source: Kernel1
  /** Lists and sets that formats of the branches take. */
  readonly used: DeclaredInputs
}

/** A family of plans that was loaded. */
export interface LoadedDispatch extends Dispatch {
  readonly loaded: PlanFamily
  readonly codes: ReadonlyMap<BranchCall, CompiledCode>
}

/** A dispatch whose schedules are compiled on first use. */
export interface KernelDispatch extends Dispatch {
  /** The kernel to which the schedules of branches are applied. */
  readonly base: AnyKernel
  readonly deterministic?: boolean | undefined
  /** Expected sizes, for which schedules are compiled before data are bound, and for which a family of plans is written. */
  readonly sizes?: ReadonlyMap<string, number> | undefined
  /** The default dispatch `auto`, which the caller did not name. */
  readonly isDefault?: boolean | undefined
}

/** Why the auto-scheduler selects a candidate, if it rejected others or has no schedule for some loop nests. */
export const automaticSelection = (
  {
    text,
    reason,
    milliseconds,
    costModel,
    plain = [],
  }: Partial<ScheduleCandidate<unknown>> & Pick<Selection, 'text'>,
  { span }: Compilation['source'],
  rejectedBranches: readonly string[],
): Selection => ({
  dispatch: 'auto',
  schedule: null,
  args: [],
  text,
  reason: reason ?? 'the fastest candidate of the auto-scheduler',
  declaredBy: null,
  origin: null,
  predictions: typeof milliseconds === 'number' ? [{ text, milliseconds }] : [],
  costModel: costModel ?? null,
  values: {},
  span: span ?? { source: '', start: 0, end: 0 },
  rejectedBranches: [...rejectedBranches, ...plainTexts(plain)],
})

/** The loop nests without a legal schedule, each with the reason. */
export const plainTexts = (plain: ScheduleCandidate<unknown>['plain']): readonly string[] =>
  plain.map(({ nest, reason }) => `${nest} has no schedule: ${reason}`)

/** The selection of a plan in which each run selects. */
export function decidedByRuns(alternatives: readonly Selection[], source: Dispatch['source']): Selection {
  const text = alternatives.map((s) => s.text).join(' or ')
  return {
    ...automaticSelection({ text, reason: 'each run decides on the device' }, source, []),
    alternatives,
  }
}

/** The selection with the alternatives of the plan, which a stored plan has as texts. */
export function withAlternatives(
  selection: Selection | null,
  { branches, binding, schedule }: LaunchPlan,
): Selection | null {
  if (!branches || selection?.alternatives) return selection
  const made = decidedByRuns(
    branches.schedules.map(({ text, when }) =>
      automaticSelection({ text, reason: when ?? 'otherwise' }, binding, []),
    ),
    binding,
  )
  return { ...made, dispatch: selection?.dispatch ?? schedule ?? made.dispatch }
}

/** The selection with the schedules that failed before; `null` for the auto-scheduler if none failed. */
export function withRejected(
  selection: Selection | null,
  text: string,
  rejected: readonly string[],
  source: Compilation['source'],
): Selection | null {
  if (rejected.length === 0) return selection
  const made = selection ?? automaticSelection({ text }, source, [])
  return { ...made, rejectedBranches: [...made.rejectedBranches, ...rejected] }
}

/** Cached kernels under schedules, by base kernel. */
const kernelsOf = new WeakMap<Compilation, Map<string, AnyKernel>>()
/** Maximum number of cached kernels per base, because arguments may depend on data. */
const MOST_MADE = 256

/** The schedule of a call with all its arguments. Throws SptError `schedule/…` for an illegal step. */
export function scheduleOf({ base }: KernelDispatch, call: BranchCall, args: readonly number[]): AnyKernel {
  const kernels = getOrAdd(kernelsOf, base.compilation, () => new Map<string, AnyKernel>())
  const { name } = call.schedule
  const key = appliedName(name, args)
  if (!kernels.has(key) && kernels.size >= MOST_MADE) kernels.delete(kernels.keys().next().value!)
  return getOrAdd(kernels, key, () => chosenHere(call, () => base.schedule(name, ...args)))
}

function chosenHere<T>({ span }: BranchCall, work: () => T): T {
  try {
    return work()
  } catch (e) {
    throw withPlace(e, span)
  }
}

/** Throws SptError `choose/requirement` if the sizes violate a requirement of the schedule. */
export function checkRequirements(
  { choice, text }: DispatchCall,
  { branch, call, selection }: Decision,
  facts: readonly Fact[] | undefined,
  sizes: ReadonlyMap<string, number>,
): void {
  const broken = brokenFact(facts, sizes)
  if (!broken) return
  failAs('choose/requirement', {
    message: `${choice.kernel}.${text} chooses ${selection.text}, which requires ${factText(broken)}, and ${broken.size} is ${sizes.get(broken.size)}`,
    span: call.span,
    ...(broken.span && { labels: [{ span: broken.span, text: 'required here' }] }),
    expected: 'a condition that implies the requirement of the schedule',
    hint: `when (${conjunction(branch.conditions, [factText(broken)])})`,
  })
}
