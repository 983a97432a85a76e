/**
 * Formats whose axes repeat coordinates (one entry for each element, not for each row): what was written once for
 * each coordinate is now written once for each entry, so a spatial iterator becomes a reduction where the target
 * does not have the axis itself. Where that changes what the kernel means, the format is refused.
 */
import { fail } from '../../ast/diagnostic.ts'
import type { StoredAxis } from '../../ir/axis.ts'
import { checkKinds } from '../../ir/elaborate/kinds.ts'
import type { Load } from '../../ir/expr.ts'
import type { Iteration, Kernel1, Stmt1 } from '../../ir/stage1.ts'

export function withRepeats(kernel: Kernel1, axes: readonly StoredAxis[], text: string, at: object): Kernel1 {
  const repeated = new Set(axes.filter((a) => 'unique' in a && !a.unique).map((a) => a.name))
  if (repeated.size === 0) return kernel
  const next = { ...kernel, body: kernel.body.map((s) => combined(s, kernel, repeated)) }
  const [problem] = checkKinds(next)
  if (problem)
    fail({
      code: 'schedule/format-repeats',
      message: `${text} may hold a coordinate of ${[...repeated].join(', ')} several times: ${problem.message}`,
      ...at,
      expected: 'sums over the repeated coordinates that nothing reads before they are complete',
      hint: 'choose a format in which each coordinate stands once, such as one with all elements of a row together',
    })
  return next
}

function combined(s: Stmt1, kernel: Kernel1, repeated: ReadonlySet<string>): Stmt1 {
  const inside = (body: readonly Stmt1[]): Stmt1[] => body.map((x) => combined(x, kernel, repeated))
  if (s.kind === 'if') return { ...s, then: inside(s.then), else: inside(s.else) }
  if (s.kind !== 'iterate') return s
  const targets = targetsOf(s)
  const iters = s.iters.map((it) => {
    const apart = targets.every((t) => ownElement(t, it.name, it.axis, kernel))
    return it.kind === 'S' && repeated.has(it.axis) && !apart ? { ...it, kind: 'R' as const } : it
  })
  return { ...s, iters, body: inside(s.body) } satisfies Iteration
}

/** The target has the axis, and is written at the entry itself. */
function ownElement(t: Load, iter: string, axis: string, kernel: Kernel1): boolean {
  const d = kernel.buffers.find((b) => b.name === t.buffer)?.axes.indexOf(axis) ?? -1
  const index = t.index[d]
  return index?.kind === 'var' && index.name === iter
}

const targetsOf = (s: Stmt1): Load[] =>
  s.kind === 'iterate'
    ? s.body.flatMap(targetsOf)
    : s.kind === 'if'
      ? [...s.then, ...s.else].flatMap(targetsOf)
      : s.kind === 'let'
        ? []
        : [...s.targets]
