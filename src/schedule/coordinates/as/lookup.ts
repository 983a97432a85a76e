/**
 * Lookup of an element of a split tensor at coordinates that are not the iterators' own. The map of a part gives the
 * position, unless it depends on the stored coordinates. The selection tree gives the part. If the tree depends on the
 * stored coordinates, the part is the only one with a value other than the fill value.
 */
import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { sourceName } from '../../../ir/coordinates/axis.ts'
import type { Expr, Load } from '../../../ir/expressions/expr.ts'
import {
  all,
  binary,
  conjuncts,
  constant,
  eq,
  ge,
  int,
  load,
  lt,
  not,
  select,
} from '../../../ir/expressions/expr.ts'
import { freeVars, mentionsSome, substitute } from '../../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import { childrenOf, type PartTree } from '../../../ir/formats/part-tree.ts'
import type { Query } from '../../../ir/formats/queries.ts'
import type { Split, SplitBuffer } from './tensor-split.ts'

export interface Lookup {
  readonly split: Split
  readonly buffer: SplitBuffer
  /** The coordinate of each old axis, over the variables in scope. */
  readonly old: readonly Expr[]
  /** True for each coordinate of `old` that is known to be in range. */
  readonly inRange: readonly boolean[]
  /** The original access with rewritten indices. */
  readonly access: Load
}

/** Returns the element, or the fill value if the tensor does not have it. @throws SptError `schedule/format-lookup` */
export function lookup(l: Lookup): Expr {
  const { split, buffer } = l
  const { parts, tree } = split.instance
  const fill = constant(buffer.buffer.fill, buffer.buffer.dtype)
  const chosen = (): Expr => {
    for (const p of parts) checkMap(l, p.instance)
    const elements = parts.map((_, k) => elementOf(l, k))
    return asksNothing(tree)
      ? choose(tree, l, elements, fill)
      : firstThatHolds(l, elements, buffer.buffer.fill, fill)
  }
  const position = split.position?.(l.old)
  const value = position
    ? select(position.held, elementAt(l, 0, position.index), buffer.absent ?? fill)
    : chosen()
  // Coordinates out of range may be mapped to valid positions.
  const range = l.old.flatMap((o, k) => (l.inRange[k] ? [] : [ge(o, int(0)), lt(o, split.over[k]!.extent)]))
  return select(all(range), value, fill)
}

/**
 * Returns the element as a write target. @throws SptError `schedule/format-lookup` unless the format has one part that
 * holds every coordinate
 */
export function lookupTarget(l: Lookup): Load {
  const { parts, tree } = l.split.instance
  const text = l.split.instance.text
  const name = l.buffer.buffer.name
  if (tree.kind !== 'leaf')
    refuse(l, `${name} is written at coordinates that are not iterators, and ${text} has several parts`)
  const { instance } = parts[0]!
  checkMap(l, instance)
  const plain = instance.map.every((e) => e.kind === 'var')
  if (!plain && !l.inRange.every(Boolean))
    refuse(
      l,
      `${name} may be written at coordinates out of range, which the map of ${text} could convert to valid ones`,
    )
  return elementOf(l, 0)
}

function elementOf(l: Lookup, part: number): Load {
  const at = coordinates(l)
  return elementAt(
    l,
    part,
    l.split.instance.parts[part]!.instance.map.map((m) => substitute(m, at)),
  )
}

function elementAt(l: Lookup, part: number, index: readonly Expr[]): Load {
  const { split, buffer, access } = l
  const { start } = buffer
  return load(
    buffer.parts[part]!,
    [...access.index.slice(0, start), ...index, ...access.index.slice(start + split.over.length)],
    access.dtype,
    access.span,
  )
}

const coordinates = (l: Lookup): ReadonlyMap<string, Expr> =>
  new Map(l.split.over.map((a, k) => [a.name, l.old[k]!]))

function choose(tree: PartTree, l: Lookup, elements: readonly Expr[], fill: Expr): Expr {
  if (tree.kind === 'leaf') return elements[tree.part]!
  const at = coordinates(l)
  if (tree.kind === 'index') {
    const index = substitute(tree.index, at)
    return tree.children.reduceRight<Expr>((rest, child, k) => {
      const value = choose(child, l, elements, fill)
      return tree.total && k === tree.children.length - 1 ? value : select(eq(index, int(k)), value, rest)
    }, fill)
  }
  return tree.cases.reduceRight<Expr>((rest, c) => {
    const value = choose(c.child, l, elements, fill)
    return c.where ? select(substitute(c.where, at), value, rest) : value
  }, fill)
}

/**
 * Returns the element of the first part that holds a value. A coordinate is in one part, and in all other parts the
 * coordinate reads as the fill value. A map distinguishes only coordinates that its part accepts (`j / s` if `j % s ==
 * 0`), so the part's conditions are evaluated as well, except conditions on queries.
 */
function firstThatHolds(l: Lookup, elements: readonly Expr[], value: number, fill: Expr): Expr {
  if (Number.isNaN(value))
    refuse(
      l,
      `${l.buffer.buffer.name} is read at coordinates that are not iterators, and with a fill value of nan the part of ${l.split.instance.text} cannot be determined`,
    )
  const at = coordinates(l)
  const taken = new Map(conditionsOf(l.split.instance.tree))
  return elements.reduceRight<Expr>((rest, e, part) => {
    const conditions = taken.get(part)!.map((c) => substitute(c, at))
    const last = part === elements.length - 1
    return select(all(last ? conditions : [...conditions, binary('ne', e, fill)]), e, rest)
  }, fill)
}

/** Returns for each part the conditions on the path to it that do not depend on stored coordinates. */
function conditionsOf(
  tree: PartTree,
  outside: readonly Expr[] = [],
): readonly (readonly [number, readonly Expr[]])[] {
  if (tree.kind === 'leaf') return [[tree.part, outside]]
  const queries = new Set(tree.queries.map((q) => q.name))
  const known = (e: Expr): boolean => !mentionsSome(e, queries)
  if (tree.kind === 'index')
    return tree.children.flatMap((c, k) =>
      conditionsOf(c, known(tree.index) ? [...outside, eq(tree.index, int(k))] : outside),
    )
  const others = tree.cases.flatMap(({ where }) => (where && known(where) ? [not(where)] : []))
  return tree.cases.flatMap(({ where, child }) =>
    conditionsOf(child, [...outside, ...(where ? conjuncts(where).filter(known) : others)]),
  )
}

const asksNothing = (tree: PartTree): boolean =>
  tree.kind === 'leaf' || (tree.queries.length === 0 && childrenOf(tree).every(asksNothing))

/** Queries are evaluated while data are bound, and a kernel cannot evaluate them. */
function checkMap(l: Lookup, part: FormatInstance): void {
  const [list] = part.lists
  if (list)
    refuse(
      l,
      `${l.buffer.buffer.name} is accessed at coordinates that are not iterators, and ${part.text} stores coordinates in the list ${list.axis.name}, which cannot be searched`,
    )
  const query = part.queries.find((q) => part.map.some((m) => freeVars(m).has(q.name)))
  if (query)
    refuse(
      l,
      `${l.buffer.buffer.name} is accessed at coordinates that are not iterators, and the map of ${part.text} depends on ${QUERY_TEXTS[query.kind]}, which is known only for iterated coordinates`,
    )
}

/** Descriptions of the kinds of queries, for messages. */
export const QUERY_TEXTS: Readonly<Record<Query['kind'], string>> = {
  count: 'a count of stored coordinates',
  rank: 'a rank among stored coordinates',
  least: 'the least of stored coordinates',
  largest: 'a rank by magnitude',
  value: 'the value',
  held: 'a set',
  place: 'a place in a sort',
  find: 'a segment of a list',
}

function refuse(l: Lookup, message: string): never {
  const names = l.split.over.map(sourceName).join(', ')
  return failWith('schedule/format-lookup', message, {
    ...(l.access.span && { span: l.access.span }),
    expected: `accesses at the iterators of ${names}`,
    hint: 'choose a format of one part whose map is arithmetic, or bind the tensor a second time under a distinct name',
  })
}
