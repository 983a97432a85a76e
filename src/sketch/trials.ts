/**
 * Steps on loop nests, tried and applied. The steps on isomorphic loop nests are applied once; the result is repeated with other names.
 */
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import type { Kernel2 } from '../ir/statements/loops.ts'
import {
  type KnownSteps,
  ModelSchedule,
  type NestGroup,
  nestGroup,
  repeatSteps,
} from '../schedule/state/isomorphic-nests.ts'
import { Draft, type Schedulable } from './draft.ts'
import { type NestShape, nestShapes } from './strands.ts'

type Steps = <K extends Schedulable<K>>(draft: Draft<K>) => void

/** Steps on some nests. */
export interface NestSteps {
  readonly nests: readonly NestShape[]
  /** Identifies the steps on isomorphic nests. */
  readonly key: string
  /** The steps on the nests of a kernel; `null` if they do not fit. */
  on(nests: readonly NestShape[]): Steps | null
}

/** The steps of several plans for different nests, one after another. */
export const inSequence = (all: readonly NestSteps[]): NestSteps => {
  const nests = [...new Set(all.flatMap((s) => s.nests))]
  return {
    nests,
    key: JSON.stringify(all.map((s) => s.key)),
    on(given) {
      const steps = all.map((s) => s.on(s.nests.map((n) => given[nests.indexOf(n)]!)))
      if (steps.includes(null)) return null
      return (draft) => {
        for (const apply of steps) apply!(draft)
      }
    },
  }
}

/** Results about the kernel without loop steps by key, computed once. */
export type Memo = <T extends Outcome>(key: string, make: (draft: Draft<never>) => T) => T

/** The result of steps if it can be repeated for isomorphic nests, or the error of a rejected step. */
type Outcome = KnownSteps | SptError | null

export class Trials {
  constructor(
    private readonly kernel: Kernel2,
    private readonly memo: Memo,
  ) {}

  /**
   * The error of steps on the kernel without loop steps. Identical nests share the trial; a step that other nests affect may still be
   * rejected when it is applied.
   */
  rejection(steps: NestSteps): SptError | null {
    return this.memo([steps.key, ...steps.nests.map((n) => n.key)].join('\n'), (draft) => {
      const group = groupOf(steps, this.kernel)
      const outcome = group && this.#outcome(draft, steps, group)
      if (outcome) return outcome instanceof SptError ? outcome : null
      return draft.rejection(() => steps.on(steps.nests)!(draft))
    })
  }

  /** Applies steps; `reject` receives the errors, and the nests then stay as they are. */
  apply<K extends Schedulable<K>>(
    draft: Draft<K>,
    all: readonly NestSteps[],
    reject: (error: SptError, nests: readonly NestShape[]) => void,
  ): void {
    // Most loop nests are unchanged until their own steps; requirements on sizes, and atomic updates, change others.
    let before = draft.loops
    for (const steps of all) {
      const isNew = draft.loops.facts !== before.facts
      const known = isNew ? undefined : groupOf(steps, before)
      const isStale = isNew || known?.nests.some((n) => !draft.loops.body.includes(n))
      if (isStale) before = draft.loops
      const group = isStale ? groupOf(steps, before) : known
      const outcome = group && draft.kernel.repeated && this.#outcome(draft, steps, group)
      if (outcome && !(outcome instanceof SptError)) {
        draft.kernel = draft.kernel.repeated!((state) => repeatSteps(state, group, outcome))
        continue
      }
      const error = draft.rejection(() => steps.on(steps.nests)!(draft))
      if (error) reject(error, steps.nests)
    }
  }

  #outcome<K extends Schedulable<K>>(draft: Draft<K>, steps: NestSteps, group: NestGroup): Outcome {
    const order = steps.nests.map((n) => group.nests.findIndex((s) => s.nest === n.name))
    const key = JSON.stringify([steps.key, order, group.key])
    return this.memo<Outcome>(key, () => outcomeOf(steps, group, draft.kernel.compilation.kernel))
  }
}

const groupOf = ({ nests }: NestSteps, kernel: Kernel2): NestGroup | undefined =>
  nestGroup(
    kernel,
    nests.map((n) => n.name),
  )

/** The outcome of steps on the model of a group. */
function outcomeOf({ nests, on }: NestSteps, group: NestGroup, source: Kernel1): Outcome {
  const model = ModelSchedule.of(source, group)
  const draft = new Draft(model)
  const named = new Map(nests.map((n) => [n.name, n]))
  const own = (nest: string): NestShape | undefined => named.get(group.names.get(nest) ?? nest)
  const shapes = new Map<NestShape | undefined, NestShape>()
  for (const s of nestShapes(draft.loops, (nest) => own(nest) ?? { stem: nest, prefix: nest }))
    shapes.set(own(s.name), s)
  const inModel = nests.flatMap((n): NestShape[] => {
    const shape = shapes.get(n)
    // Requirements on sizes may simplify a loop nest, so that the steps do not fit any more.
    if (shape?.strands.length !== n.strands.length) return []
    return [{ ...shape, strands: shape.strands.map((s, k) => ({ ...s, name: n.strands[k]!.name })) }]
  })
  const steps = inModel.length === nests.length ? on(inModel) : null
  if (!steps) return null
  const error = draft.rejection(() => steps(draft))
  return error ? model.withNames(error) : draft.kernel.known()
}
