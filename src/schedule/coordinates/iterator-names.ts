/** Iterators of a Stage I kernel: lookup by the names that schedules use, and the parent of each. */
import { failAs, type Problem } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import { type Axis, isAttached, isFused, isGathered } from '../../ir/coordinates/axis.ts'
import type { Iter, Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Body1, iterationsOf, rewriteStmts1, walkStmts1 } from '../../ir/coordinates/stage1-tree.ts'
import { print1 } from '../../ir/print/print-stage1.ts'
import type { LoopRef } from '../names/kernel-names.ts'
import { among } from '../refusals.ts'

/** Throws an error that prints the current kernel. */
export const refuse = (kernel: Kernel1, code: string, problem: Problem): never =>
  failAs(code, { ...problem, notes: [print1(kernel)] })

/**
 * Returns the iteration that has all these iterators (`name` or `iteration.name`), and the iterators. Throws
 * `schedule/unknown-loop`, `schedule/not-together` or `schedule/ambiguous-loop`.
 */
export function findIters(
  kernel: Kernel1,
  names: readonly string[],
): { iteration: Iteration; iters: Iter[] } {
  const all = iterationsOf(kernel.body)
  const matches = all.filter((it) => names.every((n) => iterOf(it, n)))
  const candidates = all.flatMap((it) =>
    it.iters.map((x) =>
      all.filter((o) => o.iters.some((y) => y.name === x.name)).length > 1 ? `${it.name}.${x.name}` : x.name,
    ),
  )
  const unknown = names.find((n) => !all.some((it) => iterOf(it, n)))
  if (unknown)
    refuse(kernel, 'schedule/unknown-loop', {
      message: `there is no iterator ${unknown}`,
      ...among(unknown, candidates),
    })
  if (matches.length === 0)
    refuse(kernel, 'schedule/not-together', {
      message: `${names.join(', ')} are iterators of different iterations`,
      expected: 'iterators of the same iteration',
      hint: 'change each iteration in a separate step',
    })
  if (matches.length > 1)
    refuse(kernel, 'schedule/ambiguous-loop', {
      message: `${matches.length} iterations have ${names.join(', ')}`,
      expected: `names such as ${matches.map((m) => `${m.name}.${names[0]}`).join(', ')}`,
      hint: "put the iteration's name before the iterator's",
    })
  const iteration = matches[0]!
  return { iteration, iters: names.map((n) => iterOf(iteration, n)!) }
}

function iterOf(it: Iteration, name: string): Iter | undefined {
  const dot = name.indexOf('.')
  if (dot >= 0 && name.slice(0, dot) !== it.name) return undefined
  return it.iters.find((x) => x.name === name.slice(dot + 1))
}

/** Returns the body with the iteration `old` (compared by identity) replaced. */
export const replaceIteration = (body: Body1, old: Iteration, by: Iteration): Body1 =>
  rewriteStmts1(body, (s) => (s === old ? by : undefined))

/** Returns the iteration of this name. @throws SptError `schedule/unknown-nest` */
export function iterationNamed(kernel: Kernel1, name: string): Iteration {
  const all = iterationsOf(kernel.body)
  const candidates = all.map((it) => it.name)
  return (
    all.find((it) => it.name === name) ??
    refuse(kernel, 'schedule/unknown-nest', {
      message: `there is no iteration ${name}`,
      ...among(name, candidates),
    })
  )
}

// The parent of each iterator: the innermost enclosing iterator that opens the parent of its axis. Several
// iterators may run over one axis, so a step that moves, replaces or fuses iterators must keep these pairs,
// in addition to the order of axes.

interface Under {
  readonly iter: Iter
  /** The parent iterator; null for an iterator over a root. */
  readonly parent: Iter | null
}

/** Returns the iterators of an iteration and of the iterations inside it, outermost first. */
export function parentsIn(kernel: Kernel1, iteration: Iteration): readonly Under[] {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const out: Under[] = []
  walkStmts1(kernel.body, (s, { iterations }) => {
    const around = s.kind === 'iterate' ? [...iterations, s] : []
    if (!around.includes(iteration)) return
    const open = new Map<string, Iter>()
    for (const it of around)
      for (const iter of it.iters) {
        const axis = axes.get(iter.axis)!
        const wanted = entersBy(axis, axes)
        if (it === s) out.push({ iter, parent: wanted === null ? null : (open.get(wanted) ?? null) })
        for (const name of openedBy(axis)) open.set(name, iter)
      }
  })
  return out
}

/** Returns the stored axis (or list) that must be open for an iterator over the axis; null for a root. */
function entersBy(axis: Axis, axes: ReadonlyMap<string, Axis>): string | null {
  if (isFused(axis) || isGathered(axis) || axis.parent === null) return null
  const parent = axes.get(axis.parent)
  return isAttached(parent) ? parent.base : axis.parent
}

const openedBy = (axis: Axis): readonly string[] =>
  isFused(axis) ? axis.members : isAttached(axis) ? [axis.base] : [axis.name]

/** Returns `next`; `stands` returns the replacement of an iterator. @throws SptError `schedule/another-parent` */
export function keepParents(
  kernel: Kernel1,
  before: Iteration,
  next: Kernel1,
  after: Iteration,
  stands: (old: Iter) => Iter = (x) => x,
): Kernel1 {
  const now = parentsIn(next, after)
  for (const { iter, parent } of parentsIn(kernel, before)) {
    if (parent === null) continue
    const [child, above] = [stands(iter), stands(parent)]
    const found = now.filter((u) => u.iter === child).map((u) => u.parent)
    // Equal if both are fused, or if the child is entered by the iterator that its parent was compared with.
    const other = child === above ? undefined : found.find((p) => p !== above)
    if (other === undefined) continue
    refuse(kernel, 'schedule/another-parent', {
      message: other
        ? `${iter.name} is nested in ${parent.name}, and would be nested in ${other.name}, which runs over the same axis`
        : `${iter.name} is nested in ${parent.name}, which would be removed`,
      expected: `${above.name} the innermost iterator over the axis around ${iter.name}`,
      hint: other
        ? `keep ${other.name} after ${iter.name}, or move ${other.name} before ${above.name}`
        : `leave ${parent.name}, or do the same to ${iter.name}`,
    })
  }
  return next
}

/**
 * Returns the list of loops of a call. Iterators of Stage I have names only; anything else in the list is rejected with
 * the step. @throws SptError `api/argument` if the argument is not a list
 */
export function namesOf(loops: readonly LoopRef[]): string[] {
  expectArgument(Array.isArray(loops), 'what is to be fused', loops, "a list of loops: ['i', 'j']")
  return loops as string[]
}
