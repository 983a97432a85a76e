/**
 * Injectivity of affine index maps on coordinates: the iterators that an index distinguishes. An index determines
 * coordinate c by its dimensions D if elements that agree on D agree on c. Recognised are a bare c, c as the only
 * coordinate of a linear form, a digit of a mixed-radix number (`i * b + ii` with ii < b), quotient and remainder (`i /
 * b`, `i % b`), and the index of a load from a permutation (`row[i * b + ii]`). The loaded element may be a digit, too
 * (`tile[i] * b + ii`).
 */
import type { Axis } from '../../ir/coordinates/axis.ts'
import { denseAxis, isAttached, isGathered, isStored, repeatsCoordinates } from '../../ir/coordinates/axis.ts'
import type { Buffer1 } from '../../ir/coordinates/stage1.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { coefficientsOf, keepTerms, linear } from '../integers/linear.ts'
import { mixedRadix } from '../integers/mixed-radix.ts'
import { rangeOfSum, rangesOver } from '../integers/ranges.ts'
import type { Access } from './coordinate-accesses.ts'

/** The dimensions that determine each coordinate, by the coordinate's name. */
export type Determined = ReadonlyMap<string, readonly number[]>

interface Known {
  readonly name: string
  readonly axis: Axis
  /** The stored axis whose coordinates the iterator visits; undefined if it is unknown. */
  readonly stored: Axis | undefined
}

/** Properties of buffers that indices do not show. */
export interface Distinct {
  /** Buffers whose elements are distinct (`Buffer1.distinct`). */
  readonly permutations: ReadonlySet<string>
  /**
   * Buffers whose elements with the same first `under` coordinates are distinct (`Buffer1.listed`), and the upper bound
   * (exclusive) of all elements.
   */
  readonly lists: ReadonlyMap<string, { readonly under: number; readonly below: Expr | undefined }>
  /** Buffers of which each writing iteration has elements of its own (`Buffer1.placed`). */
  readonly placed: ReadonlySet<string>
}

export function distinctIn(buffers: readonly Buffer1[]): Distinct {
  const of = (flag: 'distinct' | 'placed') => new Set(buffers.filter((b) => b[flag]).map((b) => b.name))
  const lists = new Map(
    buffers.flatMap((b) =>
      b.listDims === undefined ? [] : [[b.name, { under: b.listDims, below: b.below }] as const],
    ),
  )
  return { permutations: of('distinct'), lists, placed: of('placed') }
}

export function determined(
  a: Access,
  dims: readonly string[],
  axes: ReadonlyMap<string, Axis>,
  known: Distinct = distinctIn([]),
): Determined {
  const storedOf = (axis: Axis): Axis | undefined =>
    isAttached(axis) || isGathered(axis) ? axes.get(axis.base) : axis
  const coords = new Map<string, Known>(
    a.around.flatMap((o) => o.coords).map((c) => [c.name, { ...c, stored: storedOf(c.axis) }]),
  )
  const out = new Map<string, readonly number[]>()
  if (known.placed.has(a.buffer) && a.mode !== 'read')
    return new Map([...coords.keys()].map((name) => [name, []]))
  for (const c of coords.values()) if (single(c)) out.set(c.name, [])
  const told = (e: Expr, dim?: string): readonly Told[] => toldBy(e, dim, coords, known)
  const listed: (Told & { readonly d: number })[] = []
  a.index.forEach((e, d) => {
    for (const t of told(e, dims[d])) {
      if (t.under.length > 0) listed.push({ ...t, d })
      else if (!out.has(t.name)) out.set(t.name, [d])
    }
  })
  for (const [name, pair] of quotients(a.index, told)) if (!out.has(name)) out.set(name, pair)
  for (const { name, under, d } of listed) {
    const above = under.map((x) => out.get(x))
    if (!out.has(name) && above.every((x) => x !== undefined))
      out.set(name, [...new Set([d, ...above.flat()])])
  }
  return out
}

/** A name that an expression determines, if all names in `under` are determined. */
interface Told {
  readonly name: string
  readonly under: readonly string[]
}

/**
 * Returns the names that an expression determines. An element of a permutation or of a list acts as a coordinate, which
 * determines the names that its index determines.
 */
function toldBy(
  e: Expr,
  dim: string | undefined,
  coords: ReadonlyMap<string, Known>,
  { permutations, lists }: Distinct,
): readonly Told[] {
  const all = new Map(coords)
  const by = new Map<string, readonly Told[]>()
  const names = (x: Expr, of?: string): readonly Told[] =>
    alone(x, of, all).flatMap((name) => by.get(name) ?? [{ name, under: [] }])
  // An index with a single value determines nothing: lists in groups of one position.
  const isFixed = (x: Expr): boolean => [...freeVars(x)].every((n) => coords.has(n) && single(coords.get(n)!))
  const over = rewriteExpr(e, (x) => {
    if (x.kind !== 'load') return undefined
    const list = lists.get(x.buffer)
    const under = permutations.has(x.buffer) && x.index.length === 1 ? 0 : list?.under
    if (under === undefined) return undefined
    const above = x.index.slice(0, under).flatMap((i) => (i.kind === 'var' ? [i.name] : []))
    const places = x.index.slice(under).flatMap((i) => (isFixed(i) ? [] : [names(i)]))
    if (above.length < under || places.some((p) => p.length === 0)) return undefined
    const name = `@${by.size}`
    by.set(
      name,
      places.flat().map((t) => ({ name: t.name, under: [...t.under, ...above] })),
    )
    // Without a known bound, the name cannot be a digit below other digits.
    const axis = denseAxis(name, list?.below ?? variable(`@end ${name}`))
    all.set(name, { name, axis, stored: axis })
    return variable(name)
  })
  // A coordinate with one possible value is not a digit, and is determined by any expression.
  const only = [...by].filter(([name]) => single(all.get(name)!)).flatMap(([, told]) => told)
  return [...names(over, dim), ...only]
}

/** Returns whether different iterations of the iterator have different coordinates under the same parents. */
function distinct({ axis, stored }: Known): boolean {
  // A list may name a coordinate twice.
  return stored !== undefined && !isGathered(axis) && !repeatsCoordinates(stored)
}

/** Returns whether the iterator has at most one coordinate, which need not be distinguished. */
function single(c: Known): boolean {
  const { stored } = c
  if (!stored || !isStored(stored) || !distinct(c)) return false
  return stored.extent.kind === 'const' && stored.extent.value <= 1
}

function alone(e: Expr, dim: string | undefined, coords: ReadonlyMap<string, Known>): readonly string[] {
  const bare = e.kind === 'var' ? coords.get(e.name) : undefined
  // On its own axis, even a repeated coordinate is an element of its own.
  if (bare && !isGathered(bare.axis) && bare.stored?.name === dim) return [bare.name]
  const all = coefficientsOf(e, new Set(coords.keys()))
  if (!all) return leading(e, coords)
  const terms = new Map([...all].filter(([name]) => !single(coords.get(name)!)))
  const names = [...terms.keys()]
  if (!names.every((n) => distinct(coords.get(n)!))) return []
  if (names.length === 1) {
    const c = terms.get(names[0]!)!
    return c.kind === 'const' ? names : []
  }
  const extentOf = (name: string): Expr | undefined => {
    const axis = coords.get(name)!.stored
    return axis && isStored(axis) ? axis.extent : undefined
  }
  const number = mixedRadix([...terms].map(([of, stride]) => ({ of, stride, extent: extentOf(of) })))
  return number ? names : leading(e, coords)
}

/**
 * Returns the name v of `c·v + rest` if the values of `rest` span less than c, whatever they depend on: v is the
 * leading digit.
 */
function leading(e: Expr, coords: ReadonlyMap<string, Known>): readonly string[] {
  const sum = linear(e)
  const [first] = [...sum.terms.values()]
    .filter((t) => t.term.kind === 'var')
    .sort((a, b) => b.coefficient - a.coefficient)
  const c = first?.term.kind === 'var' && coords.get(first.term.name)
  if (!c || !distinct(c)) return []
  const rest = keepTerms(sum, (t) => t !== first)
  if ([...rest.terms.values()].some((t) => mentions(t.term, c.name))) return []
  const extents = new Map(
    [...coords].flatMap(([name, { stored }]) => (stored && isStored(stored) ? [[name, stored]] : [])),
  )
  const { known, lo, hi } = rangeOfSum(rest, rangesOver(extents))
  return known && hi - lo < first.coefficient ? [c.name] : []
}

/** Returns the names that `x / c` on one dimension and `x % c` on another determine together, with these dimensions. */
function quotients(
  index: readonly Expr[],
  told: (e: Expr) => readonly Told[],
): readonly (readonly [string, readonly number[]])[] {
  const out: (readonly [string, readonly number[]])[] = []
  index.forEach((q, d) => {
    if (q.kind !== 'binary' || q.op !== 'div') return
    const r = index.findIndex(
      (x) => x.kind === 'binary' && x.op === 'mod' && keyOf(x.a) === keyOf(q.a) && keyOf(x.b) === keyOf(q.b),
    )
    if (r < 0) return
    for (const { name, under } of told(q.a)) if (under.length === 0) out.push([name, [d, r]])
  })
  return out
}
