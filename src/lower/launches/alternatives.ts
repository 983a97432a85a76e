/**
 * Dispatch on the device: alternative schedules in a plan. Stage III → Stage III. Launches that compute the lengths of run-time lists come first, then
 * launches that decide, then the launches of the alternatives. A run executes only the launches of the selected alternative.
 */
import type { RuntimeLists } from '../../ir/coordinates/runtime-lists.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { readsIn, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { constant, type Expr, eq, int, load } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { memoize } from '../../ir/memoize.ts'
import { accessedBy, targetsOf } from '../../ir/statements/accesses.ts'
import { renameBuffers } from '../../ir/statements/bindings.ts'
import type { Branches, Buffer, Kernel3, Launch, PlanStep } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { bodiesOf, rewriteStmts } from '../../ir/statements/tree.ts'

/** A schedule of the kernel. */
export interface Alternative {
  /** Stage I under the schedule, by which equal temporaries of alternatives are found. */
  readonly kernel: Kernel1
  readonly plan: Kernel3
  /** Arrays that the decision reads: lengths of run-time lists. */
  readonly counts: ReadonlySet<string>
}

/** A launch of an alternative, without effect unless the alternative is selected. */
export interface Conditional {
  readonly alternative: number
  readonly launch: Launch
}

interface Decision {
  /** Launches that compute `choice`, an array with the number of the selected alternative, from the arrays of counts. */
  readonly plan: Kernel3
  readonly choice: string
  /** First element of the workgroup counts in `choice`, three for each conditional launch; undefined: the launches test `choice`. */
  readonly grids?: number | undefined
  readonly schedules: Branches['schedules']
  /** Fill ratios in the conditions, with the counts of the first part of their lists. */
  readonly fillRatios: readonly { readonly text: string; readonly counts: string; readonly elements: Expr }[]
}

export interface Deciding {
  /** `nameOf`: the name of an array of counts in the result. `fresh`: a name that is not in use. */
  decide(
    nameOf: (alternative: number, counts: string) => string,
    launches: readonly Conditional[],
    fresh: (name: string) => string,
  ): Decision
  /** A launch that fills an array with zeros. */
  zero(b: Buffer): Launch
}

/** Returns the combined plan; the reason if the alternatives cannot share arrays, or if lengths are computed after updates. */
export function combineAlternatives(
  alternatives: readonly Alternative[],
  deciding: Deciding,
): Kernel3 | string {
  const plans = alternatives.map((a) => a.plan)
  if (plans.some((p) => p.steps.some((s) => s.kind === 'rounds'))) return 'the kernel has rounds'
  if (plans.some((p) => p.lostWrites)) return 'the kernel writes to elements that may be missing'
  const apart = (name: string): string => `the schedules store ${name} differently`
  const buffers = new Map<string, Buffer>()
  for (const b of plans.flatMap((p) => p.buffers)) {
    const other = buffers.get(b.name)
    if (!other) buffers.set(b.name, b)
    else if (b.role !== 'local' && (b.role !== other.role || !sameArray(b, other))) return apart(b.name)
  }
  const [{ buffers: own }] = plans as [Kernel3, ...Kernel3[]]
  const isBound = (b: Buffer): boolean => b.role !== 'local'
  for (const p of plans)
    for (const b of p.buffers) if (isBound(b) && !own.some((o) => o.name === b.name)) return apart(b.name)
  const bodies = plans.flatMap((p) => p.steps.flatMap((s) => (s.kind === 'launch' ? s.body : [])))
  const names = namesOf({
    params: plans.flatMap((p) => p.params),
    buffers: [...buffers.values()],
    body: bodies,
  })
  const parts = partsOf(alternatives, names)
  if (typeof parts === 'string') return parts
  const conditional = parts.flatMap(({ rest }, alternative) =>
    rest.map((s): Conditional => {
      const launch = s.kind === 'clear' ? deciding.zero(named(parts).get(s.buffer)!) : (s as Launch)
      return { alternative, launch }
    }),
  )
  const nameOf = (k: number, counts: string): string => parts[k]!.names.get(counts) ?? counts
  const { plan, choice, grids, schedules, fillRatios } = deciding.decide(nameOf, conditional, (n) =>
    names.fresh(n),
  )
  const steps = [
    ...parts.flatMap((p) => p.before),
    ...plan.steps,
    ...conditional.map(({ alternative, launch }, k): Launch => {
      const condition = {
        alternative,
        choice,
        ...(grids !== undefined && { grids: grids + 3 * k }),
      }
      if (grids !== undefined) return { ...launch, when: condition }
      const test = eq(load(choice, [int(0)], 'i32'), constant(alternative, 'i32'))
      return { ...launch, when: condition, body: [when(test, launch.body)] }
    }),
  ]
  const runtimeLists = parts.flatMap((p) => p.lists)
  const used = new Set(steps.flatMap((s) => [...accessedBy(s).reads, ...accessedBy(s).writes]))
  const all = [...named(parts).values(), ...plan.buffers.filter((b) => b.role !== 'in')]
  return {
    ...plans[0]!,
    params: [...new Map([...plans, plan].flatMap((p) => p.params).map((p) => [p.name, p])).values()],
    buffers: all
      .filter((b) => isBound(b) || used.has(b.name))
      .map((b) => (plan.buffers.includes(b) ? { ...b, role: 'local' } : b)),
    steps: steps.map((s, k) =>
      s.kind === 'launch' ? { ...s, name: `${plans[0]!.name.replace(/\W/g, '_')}_${k}` } : s,
    ),
    facts: plans.flatMap((p) => p.facts ?? []),
    runtimeLists,
    branches: {
      choice,
      schedules,
      fillRatios: fillRatios.map(({ counts, ...ratio }) => ({
        ...ratio,
        format: runtimeLists.findIndex((l) => l.parts[0]!.counts === counts),
      })),
    },
  }
}

const sameArray = (a: Buffer, b: Buffer): boolean =>
  a.dtype === b.dtype &&
  a.fill === b.fill &&
  a.packed === b.packed &&
  a.shape.length === b.shape.length &&
  a.shape.every((e, d) => sameExpr(e, b.shape[d]!))

/** An alternative with names of the result. */
interface Part {
  readonly names: ReadonlyMap<string, string>
  readonly buffers: readonly Buffer[]
  /** Steps that compute the counts. */
  readonly before: readonly PlanStep[]
  readonly rest: readonly PlanStep[]
  readonly lists: readonly RuntimeLists[]
}

const named = (parts: readonly Part[]): ReadonlyMap<string, Buffer> =>
  new Map(parts.flatMap((p) => p.buffers.map((b) => [b.name, b])))

function partsOf(alternatives: readonly Alternative[], fresh: Names): readonly Part[] | string {
  const parts: Part[] = []
  /** Temporaries that the steps before the decision compute completely, with the alternative that does. */
  const available = new Map<
    string,
    { readonly of: Alternative; readonly buffer: Buffer; readonly name: string }
  >()
  for (const [k, own] of alternatives.entries()) {
    const { plan, kernel, counts } = own
    const shared = new Map<string, string>()
    for (const [name, { of, buffer, name: now }] of available) {
      const b = plan.buffers.find((x) => x.name === name)
      if (b?.role === 'local' && sameArray(b, buffer) && isSameComputation(of.kernel, kernel, name))
        shared.set(name, now)
    }
    const locals = plan.buffers.filter((b) => b.role === 'local')
    const names = new Map(
      locals.map(({ name }) => [name, shared.get(name) ?? (k === 0 ? name : fresh.fresh(name))]),
    )
    const before = countingSteps(plan, counts, new Set(shared.keys()))
    const isUpdated = (b: Buffer): boolean =>
      b.role === 'inout' && [...before.values()].some((s) => accessedBy(s).writes.includes(b.name))
    const updated = plan.buffers.find(isUpdated)
    if (updated) return `${updated.name} is updated before the lists are built`
    const results = plan.buffers.filter((b) => b.role === 'out' || b.role === 'inout').map((b) => b.name)
    const isComplete = (s: PlanStep): boolean => before.get(s) === s
    const rest = stepsFor(plan, new Set(results), new Set(shared.keys()), isComplete)
    const isStored = (writer: PlanStep, name: string): boolean => {
      const step = before.get(writer)
      return step !== undefined && accessedBy(step).writes.includes(name)
    }
    for (const { name } of locals) {
      const writers = plan.steps.filter((s) => accessedBy(s).writes.includes(name))
      if (!shared.has(name) && writers.length > 0 && writers.every((w) => isStored(w, name)))
        available.set(name, {
          of: own,
          buffer: plan.buffers.find((b) => b.name === name)!,
          name: names.get(name)!,
        })
    }
    const isCounted = (l: RuntimeLists): boolean => l.parts.every((p) => counts.has(p.counts))
    parts.push({
      names,
      buffers: plan.buffers.flatMap((b) =>
        shared.has(b.name) ? [] : [{ ...b, name: names.get(b.name) ?? b.name }],
      ),
      before: plan.steps.flatMap((s) => before.get(s) ?? []).map((s) => renamedStep(s, names)),
      rest: plan.steps.filter((s) => rest.has(s)).map((s) => renamedStep(s, names)),
      // The decision checks the capacities.
      lists: (plan.runtimeLists ?? []).filter(isCounted).map((l) => ({
        ...l,
        parts: l.parts.map(({ capacity: _, ...p }) => ({ ...p, counts: names.get(p.counts)! })),
      })),
    })
  }
  return parts
}

/**
 * The steps on which the counts depend, and their replacements before the decision. A launch that also builds lists is replaced by a launch
 * that computes only the counts: the alternative with the lists builds the lists. Arrays of `given` are computed elsewhere.
 */
function countingSteps(
  plan: Kernel3,
  counts: ReadonlySet<string>,
  given: ReadonlySet<string>,
): ReadonlyMap<PlanStep, PlanStep> {
  const arrays = new Set(plan.buffers.map((b) => b.name))
  const needed = new Set(counts)
  const out = new Map<PlanStep, PlanStep>()
  /** An array that no other step writes is not read before the step writes it. */
  const isWrittenBy = (step: PlanStep, array: string): boolean =>
    plan.buffers.some((b) => b.name === array && b.role === 'local') &&
    plan.steps.every((s) => s === step || !accessedBy(s).writes.includes(array))
  /** Arrays that later steps before the decision write. */
  const written = new Set<string>()
  for (const step of plan.steps.toReversed()) {
    const own = accessedBy(step)
    if (!own.writes.some((b) => needed.has(b) && !given.has(b))) continue
    // A replaced launch runs again after the decision, with equal results if no other launch writes its inputs meanwhile.
    const isRepeatable =
      own.writes.some((b) => counts.has(b)) &&
      ![...own.reads, ...own.writes].some((b) => written.has(b)) &&
      own.reads.every((b) => !own.writes.includes(b) || !arrays.has(b) || isWrittenBy(step, b))
    const used = isRepeatable ? storingOnly(step, needed, arrays) : step
    out.set(step, used)
    const { reads, writes } = accessedBy(used)
    for (const b of [...reads, ...writes]) if (!given.has(b)) needed.add(b)
    for (const b of writes) written.add(b)
  }
  return out
}

/** Removes stores to `arrays` that are read by neither the launch nor later steps. Returns the step unchanged if other writes remain. */
function storingOnly(step: PlanStep, needed: ReadonlySet<string>, arrays: ReadonlySet<string>): PlanStep {
  if (step.kind !== 'launch') return step
  const { reads, writes } = accessedBy(step)
  const isDropped = (b: string): boolean => arrays.has(b) && !needed.has(b) && !reads.includes(b)
  if (!writes.some(isDropped)) return step
  const body = rewriteStmts(step.body, {
    stmt(s) {
      const targets = targetsOf(s)
      if (targets.length > 0) return targets.every((t) => isDropped(t.buffer)) ? [] : undefined
      const isEmpty = (s.kind === 'for' || s.kind === 'if') && bodiesOf(s).every((b) => b.length === 0)
      return isEmpty ? [] : undefined
    },
  })
  const launch = { ...step, body }
  return accessedBy(launch).writes.some(isDropped) ? step : launch
}

/** The steps on which the arrays depend, without steps that are done. Arrays of `given` are computed elsewhere. */
function stepsFor(
  { steps }: Kernel3,
  arrays: ReadonlySet<string>,
  given: ReadonlySet<string>,
  isDone: (s: PlanStep) => boolean,
): ReadonlySet<PlanStep> {
  const needed = new Set(arrays)
  const taken = new Set<PlanStep>()
  for (const step of steps.toReversed()) {
    const { reads, writes } = accessedBy(step)
    if (isDone(step) || !writes.some((b) => needed.has(b) && !given.has(b))) continue
    taken.add(step)
    for (const b of [...reads, ...writes]) if (!given.has(b)) needed.add(b)
  }
  return taken
}

function renamedStep(s: PlanStep, names: ReadonlyMap<string, string>): PlanStep {
  if (s.kind === 'clear') return { ...s, buffer: names.get(s.buffer) ?? s.buffer }
  return s.kind === 'launch' ? { ...s, body: renameBuffers(s.body, names) } : s
}

/** True if two schedules compute a temporary, and every temporary that is read for this, by the same statements. */
function isSameComputation(a: Kernel1, b: Kernel1, name: string): boolean {
  const [writers, others] = [writersOf(a), writersOf(b)]
  const seen = new Set<string>()
  const isSame = (of: string): boolean => {
    if (seen.has(of)) return true
    seen.add(of)
    const [x, y] = [writers.get(of), others.get(of)]
    if (!x || !y) return !x && !y
    return x.text === y.text && x.reads.every(isSame)
  }
  return writers.has(name) && isSame(name)
}

/** The statements that write each buffer, as a key, and the buffers that the statements read. */
const writersOf = memoize((kernel: Kernel1) => {
  const out = new Map<string, { text: string; reads: string[] }>()
  const withoutSpans = (key: string, value: unknown): unknown => (key === 'span' ? undefined : value)
  for (const s of kernel.body)
    for (const b of writtenBuffers1([s])) {
      const known = out.get(b) ?? { text: '', reads: [] }
      known.text += JSON.stringify(s, withoutSpans)
      known.reads.push(...readsIn([s]).map((l) => l.buffer))
      out.set(b, known)
    }
  return out
})
