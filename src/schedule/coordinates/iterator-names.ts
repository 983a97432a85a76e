/** Lookup of iterators by the names that schedules use, in a Stage I kernel. */

import { fail, type Refusal, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { orList } from '../../ast/diagnostics/suggest.ts'
import type { Iter, Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Body1, iterationsOf, rewriteStmts1 } from '../../ir/coordinates/stage1-tree.ts'
import { print1 } from '../../ir/print/print-stage1.ts'

/** Throws an error that prints the current kernel. */
export function refuse(kernel: Kernel1, span: Span | undefined, r: Refusal): never {
  return fail({ ...r, ...(span ? { span } : {}), notes: [print1(kernel)] })
}

/**
 * Returns the iteration that has all these iterators (`name` or `iteration.name`), and the iterators. Throws
 * `schedule/unknown-loop`, `schedule/not-together` or `schedule/ambiguous-loop`.
 */
export function findIters(
  kernel: Kernel1,
  names: readonly string[],
  span: Span | undefined,
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
    refuse(kernel, span, {
      code: 'schedule/unknown-loop',
      message: `there is no iterator ${unknown}`,
      lookup: { name: unknown, candidates },
      expected: orList(candidates),
    })
  if (matches.length === 0)
    refuse(kernel, span, {
      code: 'schedule/not-together',
      message: `${names.join(', ')} are iterators of different iterations`,
      expected: 'iterators of the same iteration',
      hint: 'change each iteration in a separate step',
    })
  if (matches.length > 1)
    refuse(kernel, span, {
      code: 'schedule/ambiguous-loop',
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
export function iterationNamed(kernel: Kernel1, name: string, span: Span | undefined): Iteration {
  const all = iterationsOf(kernel.body)
  const candidates = all.map((it) => it.name)
  return (
    all.find((it) => it.name === name) ??
    refuse(kernel, span, {
      code: 'schedule/unknown-nest',
      message: `there is no iteration ${name}`,
      lookup: { name, candidates },
      expected: orList(candidates),
    })
  )
}
