/**
 * Parts of a partition, cut to their ranges: an axis that is dense over a dimension, or over blocks of it, covers only
 * the coordinates of the part's range, counted from its start. All c parts together have as many rows as one.
 *
 * Map and inverse change on that axis only. Conditions, queries and sorts remain over the tensor's coordinates.
 */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { isDense, type StoredAxis } from '../../ir/coordinates/axis.ts'
import {
  add,
  and,
  ceildiv,
  conjuncts,
  div,
  type Expr,
  ge,
  int,
  load,
  lt,
  min,
  mul,
  sub,
  variable,
} from '../../ir/expressions/expr.ts'
import { children, freeVars, substitute, withChildren } from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import type { Composition, FormatInstance, PartInstance, PartRule } from '../../ir/formats/format.ts'
import { childrenOf, type PartTree } from '../../ir/formats/part-tree.ts'
import type { Query } from '../../ir/formats/queries.ts'
import { type SpanOption, spanOf } from './format-arguments.ts'

/** Coordinates from `start` to before `end`; `0 <= start <= end <=` the extent for every extent. */
interface Range {
  readonly start: Expr
  readonly end: Expr
  /** Lower bound of the range's coordinates; beyond the extent for an empty range. */
  readonly lowest: Expr
  readonly parts: number
}

export type Ranges = ReadonlyMap<number, Range>

/** Range p of `parts` ranges of equal size; the last ranges may be shorter, or empty. */
export function rangeOf(extent: Expr, p: number, parts: number): Range {
  const size = ceildiv(extent, int(parts))
  // The first end is within the extent, and the last one equals it.
  const boundary = (k: number): Expr =>
    k === 0 ? int(0) : k === parts ? extent : k === 1 ? size : min(mul(size, int(k)), extent)
  return { start: boundary(p), end: boundary(p + 1), lowest: mul(size, int(p)), parts: parts }
}

export const isInRange = (e: Expr, { lowest, end }: Range): Expr => and(ge(e, lowest), lt(e, end))

/** Adds a range. If a dimension has several ranges, the finest one is kept. */
export const addRange = (ranges: Ranges, dim: number, range: Range): Ranges =>
  (ranges.get(dim)?.parts ?? 1) < range.parts ? new Map([...ranges, [dim, range]]) : ranges

/** The instance cut to ranges; the same object if no axis is dense over a dimension with a range. */
export function cutToRanges(
  instance: FormatInstance,
  over: readonly StoredAxis[],
  ranges: Ranges,
): FormatInstance {
  const cuts = new Map<string, Range>()
  instance.order.forEach((name, k) => {
    const axis = instance.axes.find((a) => a.name === name)!
    for (const [dim, range] of ranges) {
      const cut = isDense(axis) && axisRange(instance.map[k]!, axis.extent, over[dim]!, range)
      if (cut) cuts.set(name, cut)
    }
  })
  if (cuts.size === 0) return instance
  const shiftedAxes = new Map([...cuts].map(([name, { start }]) => [name, add(variable(name), start)]))
  return {
    ...instance,
    axes: instance.axes.map((a) => {
      const cut = cuts.get(a.name)
      return cut ? { ...a, extent: sub(cut.end, cut.start) } : a
    }),
    map: instance.map.map((e, k) => sub(e, cuts.get(instance.order[k]!)?.start ?? int(0))),
    inverse: instance.inverse.map((e) => shiftAxes(e, shiftedAxes, instance)),
  }
}

/** Adds the starts of axes to coordinates; list loads keep the indices of their ancestor axes. */
function shiftAxes(e: Expr, shiftedAxes: ReadonlyMap<string, Expr>, instance: FormatInstance): Expr {
  const visit = (x: Expr): Expr => {
    if (x.kind === 'var') return shiftedAxes.get(x.name) ?? x
    if (x.kind !== 'load' || !instance.lists.some((l) => l.axis.name === x.buffer))
      return withChildren(x, children(x).map(visit))
    const last = x.index.length - 1
    return load(x.buffer, [...x.index.slice(0, last), visit(x.index[last]!)], x.dtype, x.span)
  }
  return instance.lists.length === 0 ? substitute(e, shiftedAxes) : visit(e)
}

/** A range of a dimension as a range of the axis, which is the dimension itself or its blocks of b. */
function axisRange(map: Expr, extent: Expr, dim: StoredAxis, range: Range): Range | null {
  const isDim = (e: Expr): boolean => e.kind === 'var' && e.name === dim.name
  if (isDim(map)) return sameExpr(extent, dim.extent) ? range : null
  if (map.kind !== 'binary' || map.op !== 'div' || !isDim(map.a) || map.b.kind !== 'const') return null
  if (!sameExpr(extent, ceildiv(dim.extent, map.b))) return null
  return { ...range, start: div(range.start, map.b), end: ceildiv(range.end, map.b) }
}

// The widths of a bucket rule.

const MAX_WIDTH = 2 ** 30

/**
 * Expands widths: `1, 2 .. 2^5` → 1, 2, 4, 8, 16, 32; `3 .. 20` → 3, 6, 12, 20; the end is always included. @throws
 * SptError `format/bucket-widths`
 */
export function bucketWidths(
  rule: Extract<PartRule, { kind: 'bucket' }>,
  composition: Composition,
  constantOf: (e: Expr, what: string) => number,
  site: SpanOption,
): readonly number[] {
  const widths: number[] = []
  const reject = (problem: string): never =>
    failWith('format/bucket-widths', `${composition.name} has buckets of ${problem}`, {
      ...spanOf(site.span, rule.span, composition.span),
      expected: `ascending widths from 1 to ${MAX_WIDTH}`,
      hint: '`a .. b` doubles from a up to b; `2^k` is a power',
    })
  for (const w of rule.widths) {
    const base = constantOf(w.value, 'a bucket width')
    const power = w.power === null ? 1 : constantOf(w.power, 'the power of a bucket width')
    const end = base ** power
    const last = widths[widths.length - 1]
    if (!Number.isInteger(end) || end < 1 || end > MAX_WIDTH) reject(`width ${end}`)
    if (w.doubling && last !== undefined) {
      if (end < last) reject(`widths ${last} .. ${end}`)
      for (let next = last * 2; next < end; next *= 2) widths.push(next)
      if (end > last) widths.push(end)
    } else if (last !== undefined && end <= last) reject(`widths ${last}, ${end}`)
    else widths.push(end)
  }
  return widths
}

// Blocks that conditions such as `bsr(4) where (density(4) >= 1)` select are full, which is claimed of their dense axes.

export function withFilledBlocks(
  tree: PartTree,
  parts: readonly PartInstance[],
  over: readonly StoredAxis[],
): readonly PartInstance[] {
  const out = [...parts]
  const visit = (node: PartTree): void => {
    if (node.kind === 'leaf') return
    if (node.kind === 'cases')
      for (const { where, child } of node.cases) {
        if (!where || child.kind !== 'leaf') continue
        const part = out[child.part]!
        const blocks = selectedBlocks(where, node.queries, over)
        if (blocks.length === 0) continue
        const claims = blocks.flatMap((b) => claimsOf(part.instance, b))
        out[child.part] = {
          ...part,
          instance: { ...part.instance, claims: [...part.instance.claims, ...claims] },
        }
      }
    childrenOf(node).forEach(visit)
  }
  visit(tree)
  return out
}

/** Blocks that are selected only if they store at least `minimum` coordinates. */
interface Block {
  /** Keys of the expressions that are constant in a block. */
  readonly by: ReadonlySet<string>
  readonly minimum: number
}

/** The blocks that a condition selects as a whole, or not at all. */
function selectedBlocks(
  where: Expr,
  queries: readonly Query[],
  over: readonly StoredAxis[],
): readonly Block[] {
  const byName = new Map(queries.map((q) => [q.name, q]))
  const conjunctTerms = conjuncts(where)
  return conjunctTerms.flatMap((c, k) => {
    const bound = lowerBoundOf(c)
    const q = bound && byName.get(bound.query)
    if (!bound || q?.kind !== 'count') return []
    const names = new Set(q.of.flatMap((e) => (e.kind === 'var' ? [e.name] : [])))
    if (!over.every((a) => names.has(a.name))) return []
    const by = new Set(q.by.map(keyOf))
    const sameGroups = (name: string): boolean => {
      const other = byName.get(name)
      return (
        other?.kind === 'count' && other.by.length === q.by.length && other.by.every((e) => by.has(keyOf(e)))
      )
    }
    // Other conditions may select only some of a block's elements.
    const isWhole = conjunctTerms.every((d, other) => other === k || [...freeVars(d)].every(sameGroups))
    return isWhole ? [{ by, minimum: bound.minimum }] : []
  })
}

/** The lower bound that a condition sets on a count, directly or as a ratio. */
function lowerBoundOf(e: Expr): { readonly query: string; readonly minimum: number } | undefined {
  if (e.kind !== 'binary') return undefined
  const constantOf = (x: Expr): number | undefined =>
    x.kind === 'const' ? x.value : x.kind === 'cast' ? constantOf(x.x) : undefined
  const countName = (x: Expr): string | undefined =>
    x.kind === 'var' ? x.name : x.kind === 'cast' ? countName(x.x) : undefined
  if (e.op === 'le') return lowerBoundOf({ ...e, op: 'ge', a: e.b, b: e.a })
  const minimum = constantOf(e.b)
  if ((e.op !== 'ge' && e.op !== 'eq') || minimum === undefined) return undefined
  const [dividend, size] = e.a.kind === 'binary' && e.a.op === 'div' ? [e.a.a, constantOf(e.a.b)] : [e.a, 1]
  const query = countName(dividend)
  // A ratio below 1 is subject to rounding.
  if (query === undefined || size === undefined || (size !== 1 && !Number.isInteger(minimum)))
    return undefined
  return { query, minimum: minimum * size }
}

/** The axes that vary within a block are full if the block stores as many elements as they have slots. */
function claimsOf(part: FormatInstance, { by, minimum }: Block): FormatInstance['claims'] {
  const byName = new Map(part.axes.map((a) => [a.name, a]))
  if (part.lists.length > 0) return []
  const varyingAxes = part.order.filter((_, k) => !by.has(keyOf(part.map[k]!))).map((a) => byName.get(a)!)
  let slots = 1
  for (const a of varyingAxes) {
    if (!isDense(a) || a.extent.kind !== 'const') return []
    slots *= a.extent.value
  }
  if (slots > minimum) return []
  return varyingAxes.map((a) => ({ axis: a.name, claim: 'full', follows: true }))
}
