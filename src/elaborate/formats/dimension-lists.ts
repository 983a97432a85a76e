/**
 * Expansion of lists of dimensions and axes in a format's text, for tensors of one order: `d[1]` becomes the name `d1`,
 * `d...` becomes all elements, `e for k from 1` becomes a copy for each number. Later stages have single names only.
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { errorCount, report } from '../diagnostics.ts'
import {
  BEYOND,
  expanded,
  type Here,
  items,
  MAX_COPIES,
  number,
  rangeOf,
  TOO_LONG,
  unknownList,
  withoutIndex,
} from './dimension-list-names.ts'

/** The list of dimensions of a format; null for a format of fixed order. */
export const listOver = (f: Pick<Ast.Format, 'over'>): Ast.ListName | null =>
  f.over.find((o) => o.all) ?? null

/** `f` for tensors of `order` dimensions, which its `over` must admit. */
export function writtenOut(f: Ast.Format, order: number): Ast.Format | null {
  const before = errorCount()
  const list = listOver(f)
  const second = f.over.find((o) => o.all && o !== list)
  if (second)
    report('check/list-twice', second.span, {
      message: `format ${f.name.name} has two lists of dimensions`,
      expected: 'one, next to single dimensions',
    })
  const length = order - f.over.length + 1
  const dims = f.over.flatMap((o) => (o.all ? elementsOf(o, length) : [o]))
  const lists = new Map(list ? [[list.name, elementNames(list.name, length)] as const] : [])
  const here: Here = { lists, numbers: new Map(), dims: list?.name ?? null, taken: takenIn(f) }
  const body =
    f.body.kind === 'composition'
      ? { ...f.body, rules: expanded(f.body.rules, here) }
      : descriptionOf(f.body, f, dims, { ...here, lists })
  return errorCount() > before ? null : { ...f, over: dims, body }
}

/** The parts of a composition in a schedule, expanded over the dimensions of a format. */
export function partsWrittenOut(
  parts: readonly Ast.AsPart[],
  list: { readonly name: string; readonly length: number } | null,
): readonly Ast.AsPart[] {
  const lists = new Map(list ? [[list.name, elementNames(list.name, list.length)] as const] : [])
  const here: Here = {
    lists,
    numbers: new Map(),
    dims: list?.name ?? null,
    taken: new Set(lists.keys()),
  }
  return expanded(parts, here)
}

export const elementNames = (list: string, length: number): string[] =>
  Array.from({ length: Math.max(0, length) }, (_, k) => `${list}${k}`)

const elementsOf = (o: Ast.Ident, length: number): Ast.Ident[] =>
  elementNames(o.name, length).map((name) => ({ name, span: o.span }))

const namesOf = (list: readonly Ast.Ident[]): string[] => list.map((i) => i.name)

function takenIn(f: Ast.Format): Set<string> {
  const out = new Set([...f.params.map((p) => p.name.name), ...namesOf(f.over)])
  if (f.body.kind === 'composition') return out
  for (const a of f.body.axes) out.add(a.name.name)
  for (const s of f.body.sorts) out.add(s.place.name).add(s.at.name)
  return out
}

// Descriptions -------------------------------------------------------------------------------------------------

/** The expanded description. Adds the lists of axes to those of `here`. */
function descriptionOf(
  b: Ast.Description,
  f: Ast.Format,
  dims: readonly Ast.Ident[],
  here: Here & { readonly lists: Map<string, readonly string[]> },
): Ast.Description {
  const copies = b.axes.flatMap((a) => copiesOf(a, here))
  for (const [name, elements] of axisLists(copies, f)) here.lists.set(name, elements)
  const axes = copies.map(({ axis, name, numbers }): Ast.AxisDecl => {
    const { each: _, name: _name, claims, ...plain } = axis
    return { ...expanded(plain, { ...here, numbers }), name, claims }
  })
  return {
    ...b,
    sorts: expanded(b.sorts, here),
    axes,
    map: mapOf(b.map, namesOf(dims), here),
    inverse: mapOf(
      b.inverse,
      axes.flatMap((a) => (a.list ? [] : [a.name.name])),
      here,
    ),
    where: expanded(b.where, here),
  }
}

/** A declared axis, before the lists are complete. */
interface Copy {
  readonly axis: Ast.AxisDecl
  readonly name: Ast.Ident
  /** Index of the axis in its list; null for an axis that is not in a list. */
  readonly index: number | null
  readonly numbers: Here['numbers']
}

function copiesOf(axis: Ast.AxisDecl, here: Here): Copy[] {
  const { name, index } = axis.name
  if (axis.each && !index) {
    report('check/list-without-index', axis.name.span, {
      message: `every copy of axis ${name} has the same name`,
      expected: `${name}[${axis.each.name.name}]`,
    })
    return []
  }
  if (!index) return [{ axis, name: axis.name, index: null, numbers: here.numbers }]
  const each = axis.each ? rangeOf(axis.each, here) : [here.numbers]
  return each.flatMap((numbers): Copy[] => {
    const k = number(index, { ...here, numbers })
    if (k === null) return []
    if (k >= 0 && k < MAX_COPIES)
      return [{ axis, name: { name: `${name}${k}`, span: axis.name.span }, index: k, numbers }]
    if (k >= 0)
      report(TOO_LONG, index.span, {
        message: `a list with ${name}[${k}] has ${k + 1} axes`,
        expected: `at most ${MAX_COPIES}: 0 to ${MAX_COPIES - 1}`,
      })
    else report(BEYOND, index.span, { message: `there is no ${name}[${k}]`, expected: '0 or more' })
    return []
  })
}

function axisLists(copies: readonly Copy[], f: Ast.Format): Map<string, readonly string[]> {
  const out = new Map<string, readonly string[]>()
  const own = new Set([...f.params.map((p) => p.name.name), ...namesOf(f.over)])
  for (const { axis, index } of copies) {
    const { name } = axis.name
    if (index === null || out.has(name)) continue
    const mine = copies.filter((c) => c.axis.name.name === name)
    const alone = mine.find((c) => c.index === null)
    if (alone || own.has(name))
      report('check/duplicate', axis.name.span, {
        message: `${name} is a list of axes, and something else`,
        labels: alone ? [{ span: alone.axis.name.span, text: 'one axis of that name' }] : [],
        hint: `rename the list ${name}, or the other declaration`,
      })
    const indices = new Set(mine.map((c) => c.index))
    const length = Math.max(...mine.map((c) => c.index ?? 0)) + 1
    const missing = Array.from({ length }, (_, k) => k).find((k) => !indices.has(k))
    if (missing !== undefined)
      report(BEYOND, axis.name.span, {
        message: `the list ${name} has an axis ${name}[${length - 1}], and no ${name}[${missing}]`,
        expected: `axes ${name}[0] to ${name}[${length - 1}]`,
      })
    out.set(name, elementNames(name, length))
  }
  return out
}

/** The expanded coordinate map. `own` has the names that it maps from, in order; its operands may have other names. */
function mapOf(m: Ast.CoordMap, own: readonly string[], here: Here): Ast.CoordMap {
  const renamed = m.from.filter((i) => i.all && !here.lists.has(i.name))
  if (renamed[1]) unknownList(renamed[1], here)
  const known = m.from.reduce((n, i) => n + (i.all ? (here.lists.get(i.name)?.length ?? 0) : 1), 0)
  const lists = new Map(here.lists)
  const from = m.from.flatMap((i): readonly Ast.Ident[] => {
    if (!i.all) {
      if (lists.has(i.name)) withoutIndex(i)
      return [i]
    }
    const names = here.lists.get(i.name) ?? namesOf(elementsOf(i, own.length - known))
    lists.set(i.name, names)
    return names.map((name) => ({ name, span: i.span }))
  })
  return { ...m, from, to: items(m.to, { ...here, lists }) }
}
