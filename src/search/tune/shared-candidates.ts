/** Candidates that were found on some data and are tried on others: by their steps, whatever space they come from. */
import type { Kernel, TraceStep } from '../../api/kernel.ts'
import { orRefused, SptError } from '../../ast/diagnostic.ts'
import { decided } from '../decided.ts'
import { traceHash } from '../records/identity.ts'
import type { KernelSpace, Point, ScheduleCall } from '../types.ts'

/** A schedule without a space. */
export interface SharedCandidate {
  /** Its steps as JSON. */
  readonly key: string
  readonly trace: readonly TraceStep[]
  readonly kernel: Kernel
  /** Schedule call in the program; `null` if it has no name there. */
  readonly call: ScheduleCall | null
  /** Groups of cases that it was found on; `null`: it is there whatever the data are. */
  readonly foundOn: Set<string> | null
}

/**
 * Decision name of points that stand for candidates; it contains a space, unlike all others. A resumed search therefore does
 * not mistake candidates for points of its own.
 */
const SHARED = 'shared candidate'

/** The point of a candidate in spaces of `within`. */
export const pointOf = ({ trace }: SharedCandidate): Point => ({ [SHARED]: traceHash(trace) })

const keyOf = (kernel: Kernel): string => JSON.stringify(kernel.toJSON())

export class SharedCandidates {
  readonly #kernel: Kernel
  readonly #all = new Map<string, SharedCandidate>()

  constructor(kernel: Kernel) {
    this.#kernel = kernel
  }

  /** In the order in which they came. */
  get all(): readonly SharedCandidate[] {
    return [...this.#all.values()]
  }

  /**
   * Adds a candidate, or a group on which it was found; returns its key. `group`: `null` for candidates available everywhere.
   */
  add(found: Kernel, group: string | null, call: ScheduleCall | null = null): string {
    const kernel = decided(found)
    const key = keyOf(kernel)
    const known = this.#all.get(key)
    if (group !== null) known?.foundOn?.add(group)
    this.#all.set(key, {
      key,
      trace: kernel.toJSON(),
      kernel,
      call: known?.call ?? (call && this.#isCalled(call, key) ? call : null),
      foundOn: known ? known.foundOn : group === null ? null : new Set([group]),
    })
    return key
  }

  /** True if the schedule of that name has these steps. */
  #isCalled({ name, args }: ScheduleCall, key: string): boolean {
    if (!this.#kernel.schedules.includes(name)) return false
    const made = orRefused(() => this.#kernel.schedule(name, ...args))
    return !(made instanceof SptError) && keyOf(made) === key
  }

  /** A space extended by all candidates as points; their names must be known to reach them. */
  within(space: KernelSpace<Kernel>): KernelSpace<Kernel> {
    const byHash = new Map(this.all.map((c) => [traceHash(c.trace), c] as const))
    return {
      name: space.name,
      // Its trials are of the same study.
      text: space.text,
      next: (partial) => space.next(partial),
      kernel: (point) => {
        const shared = byHash.get(String(point[SHARED]))
        return shared ? shared.kernel : space.kernel(point)
      },
    }
  }
}
