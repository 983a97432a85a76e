/**
 * Iterations over some of the replaced axes: conditions under which a format has axes for these coordinates alone.
 */
import { dependsOn } from '../../../analysis/dependence/query-dependence.ts'
import { isNonNegative, NATURAL } from '../../../analysis/integers/interval.ts'
import { rangesBy } from '../../../analysis/integers/ranges.ts'
import type { Diagnostic } from '../../../ast/diagnostics/diagnostic.ts'
import { proveBelow } from '../../../formats/proof/prove.ts'
import { hasHoles, isDense, type StoredAxis, sourceName } from '../../../ir/coordinates/axis.ts'
import { existenceConditions } from '../../../ir/coordinates/derived-names.ts'
import type { Iter, Iteration, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { add, type Expr, ge, int, lt } from '../../../ir/expressions/expr.ts'
import { freeVars, walkExpr } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import type { Split } from '../as/tensor-split.ts'
import { visits } from './visited-coordinates.ts'

interface PartialIteration {
  readonly it: Iteration
  readonly split: Split
  readonly part: FormatInstance
  /** New axes on which the old coordinates depend. */
  readonly wanted: ReadonlySet<string>
  /** `wanted` and their parents, without the axes of outer iterations. */
  readonly names: readonly string[]
  /** New axes that enclosing iterations run over. */
  readonly placed: ReadonlySet<string>
  /** Old axes whose coordinates are available in the iteration. */
  readonly known: ReadonlySet<string>
}

/** Returns the reasons why the iteration cannot run over the part. `apart`: each coordinate is in a single part. */
export function partialProblems(p: PartialIteration, apart = false): readonly Diagnostic[] {
  if (p.split.instance.parts.length > 1 && !apart) return [inSeveralParts(p)]
  const problem = notDetermined(p) ?? otherVisits(p, apart)
  return problem ? [problem] : []
}

const inSeveralParts = ({ it, split, known }: PartialIteration): Diagnostic => ({
  code: 'schedule/format-partial',
  message: `iteration ${it.name} is over ${[...known].join(', ')} alone, which several parts of ${split.instance.text} may hold`,
  expected: `iterations over each of ${namesOf(split)}`,
  hint: 'choose a format of one part, or an iteration over a separate axis',
})

/** A diagnostic unless each combination of old coordinates is one combination of new coordinates. */
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
    expected: `iterations over each of ${old.join(', ')}, or a format with the outer axes of ${[...known].join(', ')}`,
    hint: 'choose another format, or an iteration over a separate axis',
  }
}

/**
 * Returns a diagnostic if the body would run a different number of times for an old coordinate; null otherwise. The
 * number is irrelevant if the body only iterates over further old axes. With `apart`, a part may skip coordinates
 * that it cannot contain.
 */
function otherVisits(
  { it, split, part, names, placed, known }: PartialIteration,
  apart: boolean,
): Diagnostic | null {
  const { instance, leaving } = split
  const only = (body: readonly Stmt1[]): boolean =>
    body.every((s) => s.kind === 'iterate' && (s.iters.some((x) => leaving.has(x.axis)) || only(s.body)))
  if (only(it.body)) return null
  const { misses, adds, repeats } = visits(
    apart ? { ...part, where: null } : part,
    instance,
    known,
    new Set([...placed, ...names]),
  )
  if (!misses && !adds && !repeats) return null
  const over = [...known].join(', ')
  const dense = split.over.every((a) => !known.has(a.name) || isDense(a))
  const what = misses
    ? 'may skip some of those coordinates'
    : adds
      ? 'also visits other coordinates'
      : 'may visit some of those coordinates a different number of times'
  return {
    code: 'schedule/format-partial',
    message: `iteration ${it.name} is over ${dense ? 'all coordinates' : 'the stored coordinates'} of ${over}, and over ${[...placed, ...names].join(', ')} of ${part.text} it ${what}`,
    expected: dense
      ? `a format with dense axes for ${over}`
      : `a format whose axes for ${over} hold each stored coordinate once`,
    hint: dense
      ? 'choose another format, or move the statements for every coordinate into a separate iteration'
      : `choose another format (such as dcsr, where rows are stored), or bind ${over} a second time, over separate axes`,
  }
}

export const visitsTwice = (it: Iteration, x: Iter, split: Split): Diagnostic => ({
  code: 'schedule/format-twice',
  message: `iteration ${it.name} runs over ${x.axis} twice, and ${split.instance.text} replaces ${x.axis} together with ${namesOf(split)}`,
  expected: `one iterator over each of ${namesOf(split)}`,
  hint: 'bind the tensor a second time, over separate axes',
})

/** A diagnostic: the positions of a child axis depend on a parent axis that is not iterated any more. */
export const standsUnder = (it: Iteration, x: Iter, parent: string, split: Split): Diagnostic => ({
  code: 'schedule/format-children',
  message: `iteration ${it.name} enters ${x.axis} by ${parent}, whose iterator ${split.instance.text} replaces together with ${namesOf(split)}`,
  expected: `no iterator over another axis below ${parent}`,
  hint: `declare ${x.axis} over a separate root of the same size, iterate the root, and compare: if (r == ${parent}) { … }`,
})

const namesOf = (split: Split): string => split.over.map(sourceName).join(', ')

// Range checks of computed coordinates: conditions under which the value of a format's inverse map, or of a
// table, is a coordinate of the old axis.

/** Returns the conditions under which the computed value `e` is a coordinate of the old axis. */
export function inRange(e: Expr, old: StoredAxis, part: FormatInstance): Expr[] {
  if (staysBelow(e, old, part)) return []
  const conditions = tableConditions(e, part)
  const sort = e.kind === 'load' && part.tables.find((t) => t.name === e.buffer && t.kind === 'sort')
  if (sort && sameExpr(sort.length, old.extent)) return conditions
  const list = e.kind === 'load' && part.lists.find((l) => l.axis.name === e.buffer)
  if (list && !hasHoles(list.axis) && sameExpr(list.axis.extent, old.extent)) return conditions
  if (mayBeNegative(e)) conditions.push(ge(e, int(0)))
  const below = lt(e, old.extent)
  if (!conditions.some((c) => sameExpr(c, below))) conditions.push(below)
  return conditions
}

/** An axis coordinate, or one plus the start of a range (of a part), that provably stays below the old extent. */
function staysBelow(e: Expr, old: StoredAxis, part: FormatInstance): boolean {
  const [v, start] = e.kind === 'binary' && e.op === 'add' ? [e.a, e.b] : [e, int(0)]
  const axis = v.kind === 'var' ? part.axes.find((a) => a.name === v.name) : undefined
  if (!axis || mayBeNegative(start) || part.axes.some((a) => freeVars(start).has(a.name))) return false
  const end = add(start, axis.extent)
  return sameExpr(end, old.extent) || proveBelow(end, old.extent, [old])
}

/**
 * Returns the conditions under which loads of tables in `e` are in bounds and return a coordinate. Indices may be
 * negative or beyond the table (for example in the last of even slices), and padding of a list is not a coordinate.
 */
function tableConditions(e: Expr, part: FormatInstance): Expr[] {
  const out: Expr[] = []
  walkExpr(e, (x) => {
    const table = x.kind === 'load' ? part.tables.find((t) => t.name === x.buffer) : undefined
    if (x.kind !== 'load' || !table) return
    const index = x.index.at(-1)!
    const axis = index.kind === 'var' ? part.axes.find((a) => a.name === index.name) : undefined
    const within =
      axis && (sameExpr(axis.extent, table.length) || sameExpr(add(axis.extent, int(1)), table.length))
    if (mayBeNegative(index) && !proveBelow(int(0), index, part.axes)) out.push(ge(index, int(0)))
    if (!within) out.push(lt(index, table.length))
    const list = part.lists.find((l) => l.axis.name === table.name)
    if (list) out.push(...existenceConditions(x, list))
  })
  return out
}

/** Returns whether the value of `e` may be negative. Coordinates, sizes and table entries are natural numbers. */
export const mayBeNegative = (e: Expr): boolean =>
  !isNonNegative(
    rangesBy((x) => (x.kind === 'var' || x.kind === 'load' ? { range: NATURAL, ofData: false } : undefined))(
      e,
    ),
  )
