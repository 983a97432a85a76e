/** Sorts of formats, which order a dimension or a dense axis. */
import { dependsOn, neededBy } from '../../analysis/dependence/query-dependence.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Axis, StoredAxis } from '../../ir/coordinates/axis.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { Sort } from '../../ir/formats/format.ts'
import { declarationOf, sourceOf } from '../../ir/formats/queries.ts'
import { report } from '../diagnostics.ts'
import { coordinatesOf } from './coordinate-maps.ts'
import { namesAt } from './format-names.ts'
import { type FormatScope, type Head, integerAt } from './format-place.ts'
import { Queries } from './format-uses.ts'

/**
 * A sort. Its key must have one value for a whole slice of the tensor, because a sort moves all elements of a
 * coordinate of `s.dim` together.
 */
export function elaborateSort(
  s: Ast.Sort,
  head: Head,
  place: FormatScope,
  taken: ReadonlySet<string>,
  axis: StoredAxis | undefined,
): Sort | null {
  const dim = s.dim.name
  if (!axis && !head.over.includes(dim)) return unknownDimension(s.dim, head.over, place)
  const open = axis && head.params.find((p) => p.measured && freeVars(axis.extent).has(p.name))
  if (open)
    return report('check/sort-key', s.dim.span, {
      message: `axis ${dim} is sorted and has a measured extent`,
      expected: 'an extent of sizes and parameters',
      hint: `give ${open.name} a value`,
    })
  const dims = axis ? [...head.over, dim] : head.over
  const queries = new Queries(taken)
  const keys: FormatScope = {
    ...place,
    what: `the key of a sort in format ${head.name}`,
    values: new Map([...place.values, ...coordinatesOf(dims)]),
    sorts: [],
    queries,
  }
  const key = integerAt(s.by, namesAt(keys), 'a key')
  const windows: FormatScope = { ...place, what: 'the window of a sort', queries: 'give the window a size' }
  const within = s.within && integerAt(s.within, namesAt(windows), 'a window')
  if (!key || (s.within && !within)) return null
  const wrong = queries.list.find((q) => !['group', 'coordinate'].includes(declarationOf(q).per))
  if (wrong)
    return report('check/sort-key', wrong.span ?? s.by.span, {
      message: `a sort orders the coordinates of ${dim}, and ${wrong.kind} is a property of single elements`,
      expected: `count(… by ${dim}), least(… by ${dim})`,
    })
  const other = [...dependsOn(key, queries.list, dims)].find((x) => x !== dim)
  if (other)
    return report('check/sort-key', s.by.span, {
      message: `the key of a sort of ${dim} cannot depend on ${other}`,
      expected: `${dim}, parameters, count(… by ${dim}) or least(… by ${dim})`,
    })
  return {
    place: s.place.name,
    at: s.at.name,
    dim,
    of: variable(dim),
    extent: axis?.extent ?? variable(dim),
    key,
    queries: queries.list,
    within,
    span: s.span,
  }
}

/** The coordinate on an axis before its sort, from the map. */
export function sortedOn(s: Ast.Sort, map: Expr, sorts: readonly Ast.Sort[], { list }: Queries): Expr | null {
  const q = map.kind === 'var' ? list.find((x) => x.name === map.name) : undefined
  if (q?.kind !== 'place' || q.sort !== s.place.name)
    return report('check/sort-key', s.dim.span, {
      message: `axis ${s.dim.name} is sorted, but the map does not use the sort`,
      expected: `${s.place.name}[…] in the map, for ${s.dim.name}`,
    })
  const before = sorts.slice(0, sorts.indexOf(s)).map((x) => x.place.name)
  const late = neededBy(q.of, list)
    .flatMap((x) => sourceOf(x, 'sort') ?? [])
    .find((name) => !before.includes(name))
  if (late !== undefined)
    return report('check/sort-key', s.span, {
      message: `the sort of ${s.dim.name} depends on ${late}[…], a later sort`,
      expected: 'earlier sorts',
    })
  return q.of
}

/** Reports a sort of an axis that does not have all coordinates. */
export const notSorted = (name: Ast.Ident, axis: Axis, over: readonly string[]): null =>
  report('check/sort-axis', name.span, {
    message: `axis ${name.name} is ${axis.kind}, and a sort needs a dense axis`,
    expected: `a dimension (${over.join(', ')}), or an axis that is dense_fixed`,
    hint: `declare ${name.name} as dense_fixed, or sort the dimension of this axis`,
  })

export function unknownDimension(
  name: Ast.Ident,
  over: readonly string[],
  p: Pick<FormatScope, 'what'>,
): null {
  return report('check/unknown-dimension', name.span, {
    message: `${p.what} has no dimension ${name.name}`,
    expected: over.join(', '),
    lookup: { name: name.name, candidates: over },
  })
}
