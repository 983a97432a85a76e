/** Open dispatches: a kernel with the schedules of which one is selected, and the kernel under each of them. */
import { factText } from '../../analysis/integers/facts.ts'
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import type { Choice, ScheduleCall } from '../../elaborate/index.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { brokenFact } from '../../plan/interpret.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { AutoSchedulable } from '../auto-schedule/format-candidates.ts'
import type { ScheduleCandidate } from '../auto-schedule/schedule-candidates.ts'
import { type ErrorSources, withPlace } from '../programs/error-sources.ts'
import { conjunction, type Decision, type DispatchCall, type Selection } from './dispatch-conditions.ts'

/** A kernel (`K`) to which schedules can be applied. */
export interface Selectable<K> extends AutoSchedulable<K>, Pick<ErrorSources, 'sources'> {
  sequential(): K
  schedule(name: string, ...args: (number | undefined)[]): K
}

/** A dispatch, and the kernel to which its schedules are applied. */
export interface OpenDispatch<K> extends Omit<DispatchCall, 'choice'> {
  /** `null`: the auto-scheduler selects. */
  readonly choice: Choice | null
  readonly base: K
  /** True: schedules with unordered sums are skipped. */
  readonly deterministic?: boolean | undefined
  /** The default dispatch `auto`, which the caller did not name. */
  readonly isDefault?: boolean | undefined
}

/** A kernel under the selected schedule. */
export interface SelectedKernel<K> {
  readonly kernel: K
  /** `null` for a schedule of the auto-scheduler. */
  readonly selection: Selection | null
  /** Call of the schedule, or decisions of the auto-scheduler. */
  readonly text: string
}

/** Why the auto-scheduler selects a candidate, if it rejected others. */
export const automaticSelection = (
  { text, reason, milliseconds, costModel }: Omit<ScheduleCandidate<unknown>, 'kernel'>,
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
  predictions: milliseconds === null ? [] : [{ text, milliseconds }],
  costModel,
  values: {},
  span: span ?? { source: '', start: 0, end: 0 },
  rejectedBranches,
})

/** The selection with the schedules that failed before; `null` for the auto-scheduler if none failed. */
export function withRejected(
  selection: Selection | null,
  text: string,
  rejected: readonly string[],
  source: Compilation['source'],
): Selection | null {
  if (rejected.length === 0) return selection
  const candidate = { text, milliseconds: null, costModel: null }
  const made = selection ?? automaticSelection(candidate, source, [])
  return { ...made, rejectedBranches: [...made.rejectedBranches, ...rejected] }
}

/** Cached kernels under schedules, by base kernel. */
const kernelsOf = new WeakMap<Compilation, Map<string, unknown>>()
/** Maximum number of cached kernels per base, because arguments may depend on data. */
const MOST_MADE = 256

export function applied<K extends Selectable<K>>(
  { base }: OpenDispatch<K>,
  {
    call,
    selection,
  }: Pick<Decision, 'call'> & { readonly selection: Pick<Decision['selection'], 'schedule' | 'args'> },
): K {
  const { schedule, args } = selection
  const kernels = getOrAdd(kernelsOf, base.compilation, () => new Map()) as Map<string, K & object>
  const key = appliedName(schedule, args)
  if (!kernels.has(key) && kernels.size >= MOST_MADE) kernels.delete(kernels.keys().next().value!)
  return getOrAdd(kernels, key, () => chosenHere(call, () => base.schedule(schedule, ...args) as K & object))
}

function chosenHere<T>({ span }: ScheduleCall, work: () => T): T {
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
  compilation: Compilation,
  sizes: ReadonlyMap<string, number>,
): void {
  const broken = brokenFact(compilation.loops.facts, sizes)
  if (!broken) return
  failAs('choose/requirement', {
    message: `${choice.kernel}.${text} chooses ${selection.text}, which requires ${factText(broken)}, and ${broken.size} is ${sizes.get(broken.size)}`,
    span: call.span,
    ...(broken.span ? { labels: [{ span: broken.span, text: 'required here' }] } : {}),
    expected: 'a condition that implies the requirement of the schedule',
    hint: `when (${conjunction(branch.conditions, [factText(broken)])})`,
  })
}
