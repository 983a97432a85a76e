/**
 * Rewriting of statements under a format. Iterators over the replaced axes become iterators over the axes of a part,
 * and the part's inverse map computes the old coordinates. Accesses at the iterators' coordinates stay direct; other
 * accesses become lookups (`as.ts` states when).
 */
import type { Diagnostic } from '../../../ast/diagnostics/diagnostic.ts'
import { isAttached, isStored, parentOf, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Iter, Iteration, IterKind, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { mapBodies1, mapExprs1 } from '../../../ir/coordinates/stage1-tree.ts'
import { conjuncts, type Expr, type Load, load, lt, variable } from '../../../ir/expressions/expr.ts'
import { freeVars, readsMemory, rewriteExpr } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import {
  inRange,
  mayBeNegative,
  partialProblems,
  standsUnder,
  visitsTwice,
} from '../legality/axis-prefixes.ts'
import { entryOf, opened, type Rows, viewOf } from './attached-rows.ts'
import { enters } from './iteration-fission.ts'
import { lookup, lookupTarget } from './lookup.ts'
import type { Split } from './tensor-split.ts'

/** The rewriting for one part of a split; `part` is null outside of the iterations over the split. */
export interface PartRewrite {
  readonly split: Split
  readonly part: number | null
  /** True if each outer coordinate is in a single part. */
  readonly apart?: boolean
  /** Output: reasons why iterations do not fit the part. If there are any, the rewritten statement is invalid. */
  readonly problems: Diagnostic[]
}

/** The effect of enclosing iterations. `values` has the values of old iterators, `placed` the names of new axes. */
interface Open {
  readonly values: ReadonlyMap<string, Expr>
  readonly placed: ReadonlySet<string>
  /** Old axes whose coordinates are available. */
  readonly axes: ReadonlySet<string>
  /** Upper bounds (exclusive) of the coordinates of iterators. */
  readonly extents: ReadonlyMap<string, Expr>
  readonly holds: readonly Expr[]
  readonly coordinates: ReadonlyMap<string, Expr>
  readonly renamed: ReadonlyMap<string, string>
  /** Rows of the part that are entered at the coordinate `at`; `column` is the coordinate inside of the row. */
  readonly rows: readonly (Rows & { readonly at: Expr; readonly column: Expr })[]
}

const NOTHING_OPEN: Open = {
  values: new Map(),
  placed: new Set(),
  axes: new Set(),
  extents: new Map(),
  holds: [],
  coordinates: new Map(),
  renamed: new Map(),
  rows: [],
}

export function rewriteStmt(s: Stmt1, c: PartRewrite, open: Open = NOTHING_OPEN): Stmt1 {
  if (s.kind === 'iterate') return rewriteIteration(s, c, open)
  const own = mapExprs1(
    s,
    (e) => through(e, c, open),
    (t) => target(t, c, open),
  )
  return mapBodies1(own, (body) => body.map((x) => rewriteStmt(x, c, open)))
}

/** Rewrites an iteration. New iterators are placed at the iteration that runs over the replaced axes. */
function rewriteIteration(it: Iteration, c: PartRewrite, outer: Open): Iteration {
  const { axes, over, leaving } = c.split
  const extents = new Map(outer.extents)
  for (const x of it.iters) {
    const axis = axes.get(x.axis)
    const stored = isAttached(axis) ? axes.get(axis.base) : axis
    if (stored && isStored(stored)) extents.set(x.name, stored.extent)
  }
  const open = { ...outer, extents }
  const own = it.iters.filter((x) => over.some((a) => a.name === x.axis))
  /** An attached axis is entered through an iterator that a format replaces further out. */
  const follows = it.iters.some((x) => {
    const axis = axes.get(x.axis)
    return isAttached(axis) && (open.axes.has(axis.parent) || open.renamed.has(axis.parent))
  })
  const structured =
    follows ||
    it.iters.some((x) => leaving.has(x.axis)) ||
    (own.length > 0 && it.body.some((s) => enters(s, leaving)))
  const known = new Set(structured ? [...open.axes, ...own.map((x) => x.axis)] : open.axes)
  const under = it.iters.find(
    (x) => !own.includes(x) && !isAttached(axes.get(x.axis)) && known.has(parentIn(c.split, x) ?? ''),
  )
  if (under && c.part !== null) c.problems.push(standsUnder(it, under, parentIn(c.split, under)!, c.split))
  if (!structured || c.part === null) {
    const where = it.where.map((w) => through(w, c, open))
    const coordinates = opened(axes, it.iters, open.coordinates, open.values)
    const inside = { ...open, coordinates, holds: [...open.holds, ...where.flatMap(conjuncts)] }
    return { ...it, where, body: it.body.map((s) => rewriteStmt(s, c, inside)) }
  }
  const part = c.split.instance.parts[c.part]!.instance
  const twice = own.find((x, k) => open.axes.has(x.axis) || own.findIndex((y) => y.axis === x.axis) < k)
  if (twice) c.problems.push(visitsTwice(it, twice, c.split))
  const names = own.length > 0 ? newAxes(it, own, part, c, open, known) : []
  const values = new Map(open.values)
  const where: Expr[] = []
  for (const x of own) {
    const k = over.findIndex((a) => a.name === x.axis)
    const inverse = part.inverse[k]!
    values.set(x.name, inverse)
    where.push(...inRange(inverse, over[k]!, part))
  }
  const fresh = names.map((name) => ({ name, axis: name, kind: kindOf(name, own, part, over) }))
  const entered = enteredRows(it, own, part, c, { ...open, values, axes: known })
  const first = Math.max(
    0,
    it.iters.findIndex((x) => own.includes(x)),
  )
  const rest = (from: number, to?: number): Iter[] =>
    it.iters
      .slice(from, to)
      .flatMap((x) => (own.includes(x) ? [] : { ...x, axis: entered.axes.get(x) ?? x.axis }))
  const at: Open = {
    ...entered.open,
    placed: new Set([...open.placed, ...names]),
  }
  const conditions = [...it.where.map((w) => through(w, c, at)), ...where]
  const inner = { ...at, holds: [...open.holds, ...conditions.flatMap(conjuncts)] }
  return {
    ...it,
    iters: [...rest(0, first), ...fresh, ...rest(first)],
    where: conditions,
    body: it.body.map((s) => rewriteStmt(s, c, inner)),
  }
}

/** Returns the axes that replace attached axes in the part, and the state inside of their iterators. */
function enteredRows(
  it: Iteration,
  own: readonly Iter[],
  part: FormatInstance,
  c: PartRewrite,
  open: Open,
): { readonly axes: ReadonlyMap<Iter, string>; readonly open: Open } {
  const { axes } = c.split
  const instead = new Map<Iter, string>()
  const renamed = new Map(open.renamed)
  const rows = [...open.rows]
  let coordinates = open.coordinates
  for (const x of it.iters) {
    const axis = axes.get(x.axis)
    if (isAttached(axis) && !own.includes(x)) {
      const view = viewOf(x, axis, { it, split: c.split, part, known: open.axes, renamed })
      if ('code' in view) c.problems.push(view)
      else {
        instead.set(x, view.axis)
        renamed.set(x.axis, view.axis)
        const at = entryOf(axes, axis, coordinates)
        if (view.rows && at) rows.push({ ...view.rows, at, column: variable(x.name) })
      }
    }
    coordinates = opened(axes, [x], coordinates, open.values)
  }
  return { axes: instead, open: { ...open, renamed, rows, coordinates } }
}

/** Returns the parent axis of an iterator's axis, which must be iterated around it; null for a root. */
function parentIn({ axes }: Split, x: Iter): string | null {
  const axis = axes.get(x.axis)
  return axis ? parentOf(axis) : null
}

function newAxes(
  it: Iteration,
  own: readonly Iter[],
  part: FormatInstance,
  c: PartRewrite,
  open: Open,
  known: ReadonlySet<string>,
): string[] {
  const { over } = c.split
  const whole = over.every((a) => known.has(a.name))
  const wanted = new Set(
    whole
      ? part.order
      : own.flatMap((x) => [...freeVars(part.inverse[over.findIndex((a) => a.name === x.axis)]!)]),
  )
  const names = ordered(part, wanted).filter((name) => !open.placed.has(name))
  if (!whole) {
    const partial = { it, split: c.split, part, wanted, names, placed: open.placed, known }
    c.problems.push(...partialProblems(partial, c.apart))
  }
  return names
}

/**
 * Returns S if the axis determines the coordinate of a spatial old iterator; `part-write-conflicts.ts` corrects
 * iterators that targets do not distinguish. An axis that determines no coordinate (pieces of a row) splits any
 * reduction of the iteration.
 */
function kindOf(
  name: string,
  own: readonly Iter[],
  part: FormatInstance,
  over: readonly StoredAxis[],
): IterKind {
  const of = (x: Iter): ReadonlySet<string> =>
    freeVars(part.inverse[over.findIndex((a) => a.name === x.axis)]!)
  const users = own.filter((x) => of(x).has(name))
  const spatial = (x: Iter): boolean => x.kind === 'S'
  return (users.length > 0 ? users.some(spatial) : own.every(spatial)) ? 'S' : 'R'
}

/** Returns the wanted axes in declared order, but each parent before its children. */
function ordered(part: FormatInstance, wanted: ReadonlySet<string>): string[] {
  const parents = new Map(part.axes.map((a) => [a.name, parentOf(a)]))
  const out: string[] = []
  const place = (name: string): void => {
    if (out.includes(name)) return
    const p = parents.get(name)
    if (p) place(p)
    out.push(name)
  }
  for (const name of part.order) if (wanted.has(name)) place(name)
  return out
}

/** Rewrites an expression, with its accesses to split tensors, from old coordinates to new coordinates. */
function through(e: Expr, c: PartRewrite, open: Open): Expr {
  return rewriteExpr(e, (x) => {
    if (x.kind === 'var') return open.values.get(x.name)
    return x.kind === 'load' ? access(x, c, open, false) : undefined
  })
}

function target(t: Load, c: PartRewrite, open: Open): Load {
  const index = t.index.map((e) => through(e, c, open))
  const moved = load(t.buffer, index, t.dtype, t.span)
  return (access(moved, c, open, true) as Load | undefined) ?? moved
}

/** Rewrites an access: direct in the current part at the coordinates of the iterators, otherwise a lookup. */
function access(x: Load, c: PartRewrite, open: Open, written: boolean): Expr | undefined {
  const { split } = c
  const b = split.buffers.get(x.buffer)
  if (!b) return undefined
  const n = split.over.length
  const old = x.index.slice(b.start, b.start + n)
  const part = c.part === null ? null : split.instance.parts[c.part]!.instance
  const row = open.rows.findLast((r) => sameExpr(old[0]!, r.at) && sameExpr(old[1]!, r.column))
  const direct = part && old.every((o, k) => sameExpr(o, part.inverse[k]!))
  if (part && c.part !== null && (direct || row)) {
    const along = (name: string): Expr =>
      direct || !row ? variable(name) : name === row.root ? row.at : row.column
    const index = [...x.index.slice(0, b.start), ...part.order.map(along), ...x.index.slice(b.start + n)]
    return load(b.parts[c.part]!, index, x.dtype, x.span)
  }
  if (b.stays) return undefined
  const inRange = old.map((o, k) => isCoordinate(o, split.over[k]!, c, part, open))
  const found = { split, buffer: b, old, inRange, access: x }
  return written ? lookupTarget(found) : lookup(found)
}

function isCoordinate(
  e: Expr,
  axis: StoredAxis,
  c: PartRewrite,
  part: FormatInstance | null,
  open: Open,
): boolean {
  const below = (extent: Expr | undefined): boolean => extent !== undefined && sameExpr(extent, axis.extent)
  if (e.kind === 'const' && axis.extent.kind === 'const') return e.value >= 0 && e.value < axis.extent.value
  if (e.kind === 'var' && below(open.extents.get(e.name))) return true
  // The index may be computed by the format of another tensor.
  const natural = !mayBeNegative(e) && !readsMemory(e) && [...freeVars(e)].every((v) => open.extents.has(v))
  if (natural && open.holds.some((x) => sameExpr(x, lt(e, axis.extent)))) return true
  const k = part?.inverse.findIndex((i) => sameExpr(i, e)) ?? -1
  const old = k < 0 ? undefined : c.split.over[k]
  return old !== undefined && open.axes.has(old.name) && below(old.extent)
}
