/** Candidates found on one data set and evaluated on others: identified by their steps, not by a space. */
import type { Kernel, TraceStep } from '../../../api/kernels/kernel.ts'
import { resultOrError, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { traceHash } from '../../records/identity.ts'
import type { KernelSpace, Point, ScheduleCall } from '../../types.ts'
import { withExplicitSteps } from '../alternatives.ts'

/** A schedule, independent of a space. */
export interface SharedCandidate {
  /** Steps as JSON. */
  readonly key: string
  readonly trace: readonly TraceStep[]
  readonly kernel: Kernel
  /** Schedule call in the program; `null` if it has no name there. */
  readonly call: ScheduleCall | null
  /** Groups of cases on which it was found; `null` for candidates that are always evaluated. */
  readonly foundOn: Set<string> | null
}

/** Decision name of points that stand for candidates: the space in it distinguishes them from others. */
const CANDIDATE_DECISION = 'shared candidate'

/** The point of a candidate in spaces extended by `extend`. */
export const pointOf = ({ trace }: SharedCandidate): Point => ({ [CANDIDATE_DECISION]: traceHash(trace) })

const keyOf = (kernel: Kernel): string => JSON.stringify(kernel.toJSON())

export class SharedCandidates {
  readonly #candidates = new Map<string, SharedCandidate>()

  constructor(private readonly kernel: Kernel) {}

  /** Candidates in the order in which they were added. */
  get list(): readonly SharedCandidate[] {
    return [...this.#candidates.values()]
  }

  /** Adds a candidate, or a group on which it was found (`null`: always evaluated); returns its key. */
  add(candidate: Kernel, group: string | null, call: ScheduleCall | null = null): string {
    const kernel = withExplicitSteps(candidate)
    const key = keyOf(kernel)
    const existing = this.#candidates.get(key)
    if (group !== null) existing?.foundOn?.add(group)
    this.#candidates.set(key, {
      key,
      trace: kernel.toJSON(),
      kernel,
      call: existing?.call ?? (call && this.#matchesCall(call, key) ? call : null),
      foundOn: existing ? existing.foundOn : group === null ? null : new Set([group]),
    })
    return key
  }

  /** True if the named schedule of the kernel has these steps. */
  #matchesCall({ name, args }: ScheduleCall, key: string): boolean {
    if (!this.kernel.schedules.includes(name)) return false
    const scheduled = resultOrError(() => this.kernel.schedule(name, ...args))
    return !(scheduled instanceof SptError) && keyOf(scheduled) === key
  }

  /** A space extended by all candidates as points; their names must be known to reach them. */
  extend(space: KernelSpace<Kernel>): KernelSpace<Kernel> {
    const byHash = new Map(this.list.map((c) => [traceHash(c.trace), c] as const))
    return {
      name: space.name,
      // With the same text, its trials belong to the same study.
      text: space.text,
      next: (partial) => space.next(partial),
      kernel: (point) => {
        const candidate = byHash.get(String(point[CANDIDATE_DECISION]))
        return candidate ? candidate.kernel : space.kernel(point)
      },
    }
  }
}
