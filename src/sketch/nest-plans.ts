/**
 * Plans of all nests of a kernel. Each nest has its own alternatives, and a trial decides which are legal: a rejected
 * alternative never affects another nest.
 */
import type { SptError } from '../ast/diagnostics/diagnostic.ts'
import { getOrAdd, groupBy } from '../ir/memoize.ts'
import type { DisjointWrites, Kernel2 } from '../ir/statements/loops.ts'
import { Decisions, type Draft, type Plan, type Schedulable } from './draft.ts'
import { chooseEpilogues, producerOf } from './epilogues.ts'
import type { BlockShape, NestShape, RuleContext } from './strands.ts'

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

/** Applies steps to the kernel without loop steps, and returns the error if one is rejected. `key` identifies the steps. */
export type Trial = (key: string, steps: (draft: Draft<never>) => void) => SptError | null

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
  readonly atomic: readonly string[]
  readonly plan: Plan
  /** Nests that are computed where an element of this nest is complete. */
  readonly epilogues: readonly string[]
}

export function planNests(
  nests: readonly NestShape[],
  kernel: Kernel2,
  context: RuleContext,
  rulesOf: RulesOf,
  trial: Trial,
): NestPlans {
  const d = context.decisions
  const selection = new Map<NestShape, Rule>()
  const plain: PlainNest[] = []
  // Identical nests share the trial; a step that other nests affect may still be rejected when the plans are applied.
  const rejectionOf = (nest: NestShape, name: string, epilogue?: NestShape): SptError | null =>
    trial([name, nest.key, ...(epilogue ? [epilogue.key] : [])].join('\n'), (draft) => {
      const guesses = { ...context, decisions: new Decisions(null) }
      const { atomic, plan } = rulesOf(nest, guesses).find((r) => r.name === name)!
      const epilogues = epilogue ? [epilogue.name] : []
      scheduleNest(draft, { nest, atomic, epilogues, plan: plan({ name: nest.prefix, isMixed: false }) })
    })
  const select = (nest: NestShape): void => {
    const rules = rulesOf(nest, context)
    const error = rules[0] && rejectionOf(nest, rules[0].name)
    const legal = error ? rules.filter((r) => !rejectionOf(nest, r.name)) : rules
    const names = legal.map((r) => r.name)
    if (names.length > 0) selection.set(nest, legal[names.indexOf(d.form(`${nest.prefix}.sketch`, names))]!)
    else if (nest.strands.length > 0) plain.push({ nest: nest.name, reason: reasonOf(error) })
  }
  const consumers = new Set(nests.filter((n, k) => producerOf(n, nests.slice(0, k), kernel) !== undefined))
  for (const nest of nests) if (!consumers.has(nest)) select(nest)
  const destinations = chooseEpilogues(nests, kernel, d, (producer, epilogue) => {
    const rule = selection.get(producer)
    return rule?.holds === true && !rejectionOf(producer, rule.name, epilogue)
  })
  for (const nest of consumers) if (!destinations.has(nest.name)) select(nest)
  const merges = context.threads > 1 ? chooseMerges(selection, kernel.disjointWrites ?? [], d) : []
  const plans = [...selection].map(([nest, { atomic, plan }]): NestPlan => {
    const names = merges.find((group) => group.includes(nest.name))
    const ruleNames = new Set([...selection].flatMap(([n, c]) => (names?.includes(n.name) ? [c.name] : [])))
    const shape = { name: names ? nest.stem : nest.prefix, isMixed: ruleNames.size > 1 }
    const epilogues = [...destinations].flatMap(([name, to]) => (to === nest.name ? [name] : []))
    return { nest, atomic, epilogues, plan: plan(shape) }
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
      const outcomes = new Map<string, boolean[]>()
      for (const p of plans) {
        const known = getOrAdd(outcomes, `${p.epilogues.length} ${p.nest.key}`, () => [])
        attempt([p.nest.name, ...p.epilogues], () => draft.repeat(known, () => scheduleNest(draft, p)))
      }
      for (const group of merges) attempt([], () => draft.step({ kind: 'merge', nests: group }))
    },
  }
}

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
