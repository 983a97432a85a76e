/** Iterations over some of the replaced axes only: which formats have axes for just these. */
import type { Diagnostic } from '../../ast/diagnostic.ts'
import type { FormatInstance } from '../../ir/format.ts'
import type { Iter, Iteration, Stmt1 } from '../../ir/stage1.ts'
import { dependsOn } from './depends.ts'
import type { Split } from './split.ts'

/** An iteration that enters some of the old axes. */
export interface PartialIteration {
  readonly it: Iteration
  readonly split: Split
  readonly part: FormatInstance
  /** New axes that the old coordinates depend on. */
  readonly wanted: ReadonlySet<string>
  /** New axes that it would iterate: these and the parents they need. */
  readonly names: readonly string[]
  /** Old axes whose coordinates it knows. */
  readonly known: ReadonlySet<string>
}

/** `apart`: that coordinates of the iteration are in one part alone has been seen. */
export function partialProblems(p: PartialIteration, apart = false): readonly Diagnostic[] {
  if (p.split.instance.parts.length > 1 && !apart) return [inSeveralParts(p)]
  return [notDetermined(p), notAllVisited(p)].filter((d) => d !== null)
}

/** Parts have such coordinates in common. */
const inSeveralParts = ({ it, split, known }: PartialIteration): Diagnostic => ({
  code: 'schedule/format-partial',
  message: `iteration ${it.name} is over ${[...known].join(', ')} alone, which several parts of ${split.instance.text} may hold`,
  ...split.at,
  expected: `iterations over all of ${namesOf(split)}`,
  hint: 'choose a format of one part, or an iteration over an axis of its own',
})

/** Each combination of the old coordinates is one of the new: the others of the format have no say in them. */
function notDetermined({ it, split, part, wanted, names, known }: PartialIteration): Diagnostic | null {
  const old = split.over.map((a) => a.name)
  const free = names.find(
    (name) =>
      !wanted.has(name) ||
      [...dependsOn(part.map[part.order.indexOf(name)]!, part.queries, old)].some((v) => !known.has(v)),
  )
  if (free === undefined) return null
  const missing = old.filter((a) => !known.has(a))
  return {
    code: 'schedule/format-partial',
    message: `iteration ${it.name} is over ${[...known].join(', ')} alone, and ${part.text} has no axes for ${known.size > 1 ? 'them' : 'it'} without ${missing.join(', ')}`,
    ...split.at,
    expected: `iterations over all of ${old.join(', ')}, or a format whose outer axes are those of ${[...known].join(', ')}`,
    hint: 'choose another format, or an iteration over an axis of its own',
  }
}

/** An iteration over dense axes alone visits every coordinate; a sparse axis would pass some over. */
function notAllVisited({ it, split, part, names, known }: PartialIteration): Diagnostic | null {
  const { over, leaving } = split
  const dense = over.filter((a) => a.kind === 'dense_fixed').map((a) => a.name)
  if ([...known].some((a) => !dense.includes(a))) return null
  const sparse = names.find((n) => part.axes.find((a) => a.name === n)?.kind !== 'dense_fixed')
  const only = (body: readonly Stmt1[]): boolean =>
    body.every((s) => s.kind === 'iterate' && (s.iters.some((x) => leaving.has(x.axis)) || only(s.body)))
  if (sparse === undefined || only(it.body)) return null
  return {
    code: 'schedule/format-partial',
    message: `iteration ${it.name} is over all of ${[...known].join(', ')}, and ${part.text} holds only some of it (axis ${sparse})`,
    ...split.at,
    expected: `a format with dense axes for ${[...known].join(', ')}`,
    hint: 'choose another format, or put what is done for every coordinate into an iteration of its own',
  }
}

export const visitsTwice = (it: Iteration, x: Iter, split: Split): Diagnostic => ({
  code: 'schedule/format-twice',
  message: `iteration ${it.name} runs over ${x.axis} twice, and ${split.instance.text} replaces it together with ${namesOf(split)}`,
  ...split.at,
  expected: `one iterator over each of ${namesOf(split)}`,
  hint: 'bind the tensor a second time, over axes of its own',
})

const namesOf = (split: Split): string => split.over.map((a) => a.name).join(', ')
