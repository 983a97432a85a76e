/**
 * Plans of all nests of a kernel. Each nest has its own alternatives, and a trial decides which are legal: a rejected
 * alternative never affects another nest.
 */
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { groupBy } from '../ir/memoize.ts'
import type { DisjointWrites, Kernel2 } from '../ir/statements/loops.ts'
import {
  type KnownSteps,
  ModelSchedule,
  type NestGroup,
  nestGroup,
  repeatSteps,
} from '../schedule/state/isomorphic-nests.ts'
import { Decisions, Draft, type PartialPoint, type Plan, type Schedulable } from './draft.ts'
import { chooseEpilogues, producersOf } from './epilogues.ts'
import { readsIn } from './fusion.ts'
import { type BlockShape, type NestShape, nestShapes, type RuleContext } from './strands.ts'

/** A rule that applies to a nest, ready to choose values. */
export interface Rule {
  readonly name: string
  /** Buffers that several threads may update concurrently. */
  readonly atomic: readonly string[]
  /** True if a thread holds complete elements at some time. */
  readonly holds: boolean
  readonly plan: (shape: BlockShape) => Plan
}

/** The rules that apply to a nest, the heuristic default first. */
export type RulesOf = (nest: NestShape, context: RuleContext) => readonly Rule[]

/** Results about the kernel without loop steps by key, computed once. */
export type Memo = <T extends Outcome>(key: string, make: (draft: Draft<never>) => T) => T

/** The steps of a plan if they can be repeated for isomorphic nests, or the error of a rejected step. */
type Outcome = KnownSteps | SptError | null

/** A nest that no rule schedules; it runs as by `parallel()` or unscheduled. */
export interface PlainNest {
  readonly nest: string
  readonly reason: string
}

export interface NestPlans {
  /** Nests that have no plan, with the reason. */
  readonly plain: readonly PlainNest[]
  /**
   * Applies the plans, nest by nest.
   * @param reject - Receives the error of a nest, which then stays as it is; default: throws the error
   */
  apply<K extends Schedulable<K>>(draft: Draft<K>, reject?: (nest: string, error: SptError) => void): void
}

interface NestPlan {
  readonly nest: NestShape
  readonly rule: string
  readonly shape: BlockShape
  /** Nests that are computed where an element of this nest is complete. */
  readonly epilogues: readonly string[]
  readonly atomic: readonly string[]
  readonly plan: Plan
  /** The decisions of the plan. */
  readonly values: PartialPoint
}

export function planNests(
  nests: readonly NestShape[],
  kernel: Kernel2,
  context: RuleContext,
  rulesOf: RulesOf,
  memo: Memo,
): NestPlans {
  const d = context.decisions
  const selection = new Map<NestShape, Rule>()
  const plain: PlainNest[] = []
  type Choices = Pick<NestPlan, 'nest' | 'rule' | 'shape' | 'epilogues'>
  const planOf = (p: Choices, decisions: Decisions): NestPlan => {
    const { atomic, plan } = rulesOf(p.nest, { ...context, decisions }).find((r) => r.name === p.rule)!
    return { ...p, atomic, plan: plan(p.shape), values: decisions.values }
  }
  // The steps of isomorphic nests are applied once, and their result is repeated with other names.
  const stepsOn = (group: NestGroup, p: NestPlan, source: Kernel1): Outcome => {
    const model = ModelSchedule.of(source, group)
    const draft = new Draft(model)
    const shapes = nestShapes(draft.loops, () => p.nest).filter((s) => group.names.has(s.top))
    const [shape, ...others] = shapes.sort((a, b) => order(group, a, p) - order(group, b, p))
    // Requirements on sizes may simplify a loop nest, so that the rule does not apply any more.
    if (shape?.strands.length !== p.nest.strands.length) return null
    const strands = shape.strands.map((s, k) => ({ ...s, name: p.nest.strands[k]!.name }))
    const nest = { ...shape, strands }
    if (!rulesOf(nest, { ...context, decisions: new Decisions(null) }).some((r) => r.name === p.rule))
      return null
    const choices = { ...p, nest, epilogues: others.map((e) => e.name) }
    const plan = planOf(choices, new Decisions(p.values, true))
    const error = draft.rejection(() => scheduleNest(draft, plan))
    return error ? model.withNames(error) : draft.kernel.known()
  }
  const outcomeOf = <K extends Schedulable<K>>(draft: Draft<K>, p: NestPlan, group: NestGroup): Outcome => {
    const key = JSON.stringify([p.rule, p.shape, p.epilogues.length, p.values, group.key])
    return memo<Outcome>(key, () => stepsOn(group, p, draft.kernel.compilation.kernel))
  }
  const guessed = (nest: NestShape, rule: string, epilogue?: NestShape): Choices => {
    const shape = { name: nest.prefix, isMixed: false }
    return { nest, rule, shape, epilogues: epilogue ? [epilogue.name] : [] }
  }
  // Identical nests share the trial; a step that other nests affect may still be rejected when the plans are applied.
  const rejectionOf = (nest: NestShape, rule: string, epilogue?: NestShape): SptError | null =>
    memo([rule, nest.key, ...(epilogue ? [epilogue.key] : [])].join('\n'), (draft) => {
      const p = planOf(guessed(nest, rule, epilogue), new Decisions(null))
      const group = groupOf(p, kernel)
      const outcome = group && outcomeOf(draft, p, group)
      if (outcome) return outcome instanceof SptError ? outcome : null
      return draft.rejection(() => scheduleNest(draft, p))
    })
  const select = (nest: NestShape): void => {
    const rules = rulesOf(nest, context)
    const error = rules[0] && rejectionOf(nest, rules[0].name)
    const legal = error ? rules.filter((r) => !rejectionOf(nest, r.name)) : rules
    const names = legal.map((r) => r.name)
    if (names.length > 0) selection.set(nest, legal[names.indexOf(d.form(`${nest.prefix}.sketch`, names))]!)
    else if (nest.strands.length > 0) plain.push({ nest: nest.name, reason: reasonOf(error) })
  }
  const producers = producersOf(nests, kernel)
  for (const nest of nests) if (!producers.has(nest)) select(nest)
  const destinations = chooseEpilogues(producers, d, (producer, epilogue) => {
    const rule = selection.get(producer)
    return rule?.holds === true && !rejectionOf(producer, rule.name, epilogue)
  })
  for (const nest of producers.keys()) if (!destinations.has(nest.name)) select(nest)
  const isMergeable = (run: readonly NestShape[]): boolean => {
    const rule = selection.get(run[0]!)!.name
    const key = ['merge', run.length, rule, run[0]!.key].join('\n')
    return !memo(key, (draft) =>
      draft.rejection(() => {
        for (const nest of run) scheduleNest(draft, planOf(guessed(nest, rule), new Decisions(null)))
        draft.step({ kind: 'merge', nests: run.map((n) => n.name) })
      }),
    )
  }
  const targets = new Set(destinations.values())
  const runs = context.threads > 1 ? independentRuns(nests, kernel) : []
  const mergedRuns = runs
    .filter((run) => run.every((n) => selection.has(n) && !targets.has(n.name)) && isMergeable(run))
    .filter((run) => d.form(`${run[0]!.prefix}.launches`, ['merged', 'apart']) === 'merged')
    .map((run) => run.map((n) => n.name))
  const merges = context.threads > 1 ? chooseMerges(selection, kernel.disjointWrites ?? [], d) : []
  const epiloguesOf = groupBy(destinations.keys(), (name) => destinations.get(name)!)
  const plans = [...selection].map(([nest, { name: rule }]): NestPlan => {
    const names = merges.find((group) => group.includes(nest.name))
    const rules = names && [...selection].flatMap(([n, c]) => (names.includes(n.name) ? [c.name] : []))
    const shape = { name: names ? nest.stem : nest.prefix, isMixed: new Set(rules).size > 1 }
    const epilogues = epiloguesOf.get(nest.name) ?? []
    const choices = { nest, rule, shape, epilogues }
    planOf(choices, d)
    return planOf(choices, new Decisions(d.values, true))
  })
  return {
    plain,
    apply(draft, reject) {
      const attempt = (names: readonly string[], steps: () => void): void => {
        const error = draft.rejection(steps)
        if (!error) return
        if (!reject) throw error
        for (const name of names) reject(name, error)
      }
      // Most loop nests are unchanged until their own plan; requirements on sizes, and atomic updates, change others.
      let before = draft.loops
      for (const p of plans) {
        const isNew = draft.loops.facts !== before.facts
        const known = isNew ? undefined : groupOf(p, before)
        const isStale = isNew || known?.nests.some((n) => !draft.loops.body.includes(n))
        if (isStale) before = draft.loops
        const group = isStale ? groupOf(p, before) : known
        const outcome = group && draft.kernel.repeated && outcomeOf(draft, p, group)
        if (outcome && !(outcome instanceof SptError))
          draft.kernel = draft.kernel.repeated!((state) => repeatSteps(state, group, outcome))
        else attempt([p.nest.name, ...p.epilogues], () => scheduleNest(draft, p))
      }
      for (const group of [...merges, ...mergedRuns])
        attempt([], () => draft.step({ kind: 'merge', nests: group }))
    },
  }
}

function groupOf({ nest, epilogues }: NestPlan, kernel: Kernel2): NestGroup | undefined {
  const tops = kernel.body.flatMap((s) => (s.kind === 'for' && epilogues.includes(s.nest) ? [s.var] : []))
  return nestGroup(kernel, [nest.top, ...tops])
}

/** The position of a nest of a model among the nest and the epilogues of a plan. */
const order = ({ names }: NestGroup, { top, name }: NestShape, { nest, epilogues }: NestPlan): number =>
  names.get(top) === nest.top ? -1 : epilogues.indexOf(names.get(name)!)

export const reasonOf = (error: SptError | null | undefined): string =>
  error?.diagnostics[0]?.message ?? 'no sketch fits its loops'

function scheduleNest<K extends Schedulable<K>>(
  draft: Draft<K>,
  { nest, atomic, plan, epilogues }: NestPlan,
): void {
  for (const buffer of atomic) draft.atomic(buffer)
  const arranged = plan(draft)
  const at = arranged.completeAt === undefined ? nest.top : { var: arranged.completeAt }
  for (const epilogue of epilogues) draft.step({ kind: 'compute_at', nest: epilogue, at })
  arranged.finish(draft)
}

/** Runs of consecutive nests that are identical up to names, and of which none uses what another writes. */
function independentRuns(nests: readonly NestShape[], kernel: Kernel2): readonly (readonly NestShape[])[] {
  const runs: NestShape[][] = []
  const written = new Set<string>()
  const read = new Set<string>()
  for (const nest of nests) {
    const run = runs.at(-1)
    const writes = nest.strands.flatMap((s) => s.buffers)
    const reads = [...readsIn(nest, kernel)]
    const meets = [...reads, ...writes].some((b) => written.has(b)) || writes.some((b) => read.has(b))
    if (run && run[0]?.key === nest.key && !meets) run.push(nest)
    else {
      runs.push([nest])
      written.clear()
      read.clear()
    }
    for (const b of writes) written.add(b)
    for (const b of reads) read.add(b)
  }
  return runs.filter((r) => r.length > 1)
}

/** Copies of an iteration over several parts that become one launch, the remainder part first. */
function chooseMerges(
  selection: ReadonlyMap<NestShape, Rule>,
  disjointWrites: readonly DisjointWrites[],
  d: Decisions,
): readonly (readonly string[])[] {
  return [...groupBy(selection.keys(), (n) => n.stem)].flatMap(([stem, nests]) => {
    if (nests.length < 2 || !areIndependent(nests, selection, disjointWrites)) return []
    const isMerged = d.form(`${stem}.launches`, ['apart', 'merged']) === 'merged'
    return isMerged ? [nests.map((n) => n.name).reverse()] : []
  })
}

/** True if the nests write disjoint elements of the buffers they share, or all update them atomically. */
function areIndependent(
  nests: readonly NestShape[],
  selection: ReadonlyMap<NestShape, Rule>,
  disjointWrites: readonly DisjointWrites[],
): boolean {
  const writes = nests.flatMap((nest) =>
    [...new Set(nest.strands.flatMap((s) => s.buffers))].map((buffer) => ({ buffer, nest })),
  )
  return [...groupBy(writes, (w) => w.buffer)].every(([buffer, writers]) => {
    const sharing = writers.map((w) => w.nest)
    if (sharing.length < 2 || sharing.every((n) => selection.get(n)!.atomic.includes(buffer))) return true
    return disjointWrites.some((w) => {
      const groups = sharing.map((n) => w.nests.findIndex((g) => g.includes(n.name)))
      return w.buffer === buffer && !groups.includes(-1) && new Set(groups).size === groups.length
    })
  })
}
