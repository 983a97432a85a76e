/**
 * Statements under a format: iterators over the replaced axes become iterators over those of a part, old
 * coordinates are computed by its inverse map, accesses at them stay where they are, and others are looked up
 * (`as.ts` says when).
 */
import type { Diagnostic } from '../../ast/diagnostic.ts'
import { provesBelow } from '../../formats/proof/prove.ts'
import { hasHoles, isStored, parentOf, type StoredAxis } from '../../ir/axis.ts'
import { isListed } from '../../ir/coordinate-lists.ts'
import { add, conjuncts, type Expr, ge, int, type Load, load, lt, variable } from '../../ir/expr.ts'
import { freeVars, rewriteExpr, someExpr, walkExpr } from '../../ir/expr-tree.ts'
import type { FormatInstance } from '../../ir/format.ts'
import type { Iter, Iteration, IterKind, Stmt1 } from '../../ir/stage1.ts'
import { mapBodies1, mapExprs1 } from '../../ir/stage1-tree.ts'
import { sameExpr } from '../../ir/structural-equality.ts'
import { partialProblems, standsUnder, visitsTwice } from './axis-prefixes.ts'
import { enters } from './iteration-fission.ts'
import { lookup, lookupTarget } from './lookup.ts'
import type { Split } from './tensor-split.ts'

/** One part of a split, or (`part: null`) what lies outside of the iterations over it. */
export interface PartRewrite {
  readonly split: Split
  readonly part: number | null
  /** Outer coordinates are each in one part alone. */
  readonly apart?: boolean
  /** Why iterations do not fit the part is collected here; the result is of no use then. */
  readonly problems: Diagnostic[]
}

/** What enclosing iterations opened: old iterators by their values, new axes by name. */
interface Open {
  readonly values: ReadonlyMap<string, Expr>
  readonly placed: ReadonlySet<string>
  /** Old axes whose coordinates are known. */
  readonly axes: ReadonlySet<string>
  /** Iterators with the extents that their coordinates stay below. */
  readonly extents: ReadonlyMap<string, Expr>
  /** What holds: the conditions of the iterations around, rewritten. */
  readonly holds: readonly Expr[]
}

const NOTHING_OPEN: Open = {
  values: new Map(),
  placed: new Set(),
  axes: new Set(),
  extents: new Map(),
  holds: [],
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

/** Which iterations of a nest enter the replaced structure decides where the new iterators go. */
function rewriteIteration(it: Iteration, c: PartRewrite, outer: Open): Iteration {
  const { over, leaving } = c.split
  const extents = new Map(outer.extents)
  for (const x of it.iters) {
    const axis = c.split.axes.get(x.axis)
    if (axis && isStored(axis)) extents.set(x.name, axis.extent)
  }
  const open = { ...outer, extents }
  const own = it.iters.filter((x) => over.some((a) => a.name === x.axis))
  const structured =
    it.iters.some((x) => leaving.has(x.axis)) || (own.length > 0 && it.body.some((s) => enters(s, leaving)))
  const known = new Set(structured ? [...open.axes, ...own.map((x) => x.axis)] : open.axes)
  const under = it.iters.find((x) => !own.includes(x) && known.has(parentIn(c.split, x) ?? ''))
  if (under && c.part !== null) c.problems.push(standsUnder(it, under, parentIn(c.split, under)!, c.split))
  if (!structured || c.part === null) {
    const where = it.where.map((w) => through(w, c, open))
    const inside = { ...open, holds: [...open.holds, ...where.flatMap(conjuncts)] }
    return { ...it, where, body: it.body.map((s) => rewriteStmt(s, c, inside)) }
  }
  const part = c.split.instance.parts[c.part]!.instance
  const twice = own.find((x, k) => open.axes.has(x.axis) || own.findIndex((y) => y.axis === x.axis) < k)
  if (twice) c.problems.push(visitsTwice(it, twice, c.split))
  const names = newAxes(it, own, part, c, open, known)
  const values = new Map(open.values)
  const where: Expr[] = []
  for (const x of own) {
    const k = over.findIndex((a) => a.name === x.axis)
    const inverse = part.inverse[k]!
    values.set(x.name, inverse)
    where.push(...inRange(inverse, over[k]!, part))
  }
  const fresh = names.map((name) => ({ name, axis: name, kind: kindOf(name, own, part, over) }))
  const first = it.iters.findIndex((x) => own.includes(x))
  const rest = (from: number, to?: number): Iter[] => it.iters.slice(from, to).filter((x) => !own.includes(x))
  const at: Open = { ...open, values, placed: new Set([...open.placed, ...names]), axes: known }
  const conditions = [...it.where.map((w) => through(w, c, at)), ...where]
  const inner = { ...at, holds: [...open.holds, ...conditions.flatMap(conjuncts)] }
  return {
    ...it,
    iters: [...rest(0, first), ...fresh, ...rest(first)],
    where: conditions,
    body: it.body.map((s) => rewriteStmt(s, c, inner)),
  }
}

/** The axis that an iterator enters its own by, which has to be iterated around it. */
function parentIn({ axes }: Split, x: Iter): string | null {
  const axis = axes.get(x.axis)
  return axis ? parentOf(axis) : null
}

/** The new axes to iterate: those that the coordinates need, or all that are left once every old one is known. */
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
 * S where an old iterator that the axis says something of is: `format-iterator-kinds.ts` takes back what targets do not tell
 * apart. An axis that no coordinate depends on (pieces of a row) is one more way to split whatever is reduced.
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

/** Declared order, except that a parent comes before its children. */
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

const hasLoad = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'load')

/** Conditions under which a computed old coordinate is one: none where the new axis ranges over just those. */
function inRange(e: Expr, old: StoredAxis, part: FormatInstance): Expr[] {
  if (staysBelow(e, old, part)) return []
  const conditions = tableConditions(e, part)
  const sort = e.kind === 'load' && part.tables.find((t) => t.name === e.buffer && t.of === 'sort')
  if (sort && sameExpr(sort.length, old.extent)) return conditions
  const list = e.kind === 'load' && part.lists.find((l) => l.axis.name === e.buffer)
  if (list && !hasHoles(list.axis) && sameExpr(list.axis.extent, old.extent)) return conditions
  if (mayBeNegative(e)) conditions.push(ge(e, int(0)))
  const below = lt(e, old.extent)
  if (!conditions.some((c) => sameExpr(c, below))) conditions.push(below)
  return conditions
}

/** The coordinates of an axis as they are, or (a part of a partition) from the start of a range on. */
function staysBelow(e: Expr, old: StoredAxis, part: FormatInstance): boolean {
  const [v, start] = e.kind === 'binary' && e.op === 'add' ? [e.a, e.b] : [e, int(0)]
  const axis = v.kind === 'var' ? part.axes.find((a) => a.name === v.name) : undefined
  if (!axis || mayBeNegative(start) || part.axes.some((a) => freeVars(start).has(a.name))) return false
  const end = add(start, axis.extent)
  return sameExpr(end, old.extent) || provesBelow(end, old.extent, [old])
}

/** A table is loaded within its length: beyond it (the last of even slices, say) there are no coordinates, nor in the padding of a list. */
function tableConditions(e: Expr, part: FormatInstance): Expr[] {
  const out: Expr[] = []
  walkExpr(e, (x) => {
    const table = x.kind === 'load' ? part.tables.find((t) => t.name === x.buffer) : undefined
    if (x.kind !== 'load' || !table) return
    const index = x.index.at(-1)!
    const axis = index.kind === 'var' ? part.axes.find((a) => a.name === index.name) : undefined
    const within =
      axis && (sameExpr(axis.extent, table.length) || sameExpr(add(axis.extent, int(1)), table.length))
    if (!within) out.push(lt(index, table.length))
    const list = part.lists.find((l) => l.axis.name === table.name)
    if (list) out.push(...isListed(x, list))
  })
  return out
}

/** Coordinates, sizes and what tables hold are natural numbers; of what is made of them only this is taken to be. */
function mayBeNegative(e: Expr): boolean {
  switch (e.kind) {
    case 'const':
      return e.value < 0
    case 'var':
    case 'load':
      return false
    case 'select':
      return mayBeNegative(e.then) || mayBeNegative(e.else)
    case 'binary':
      if (e.op === 'max') return mayBeNegative(e.a) && mayBeNegative(e.b)
      if (e.op === 'mod') return mayBeNegative(e.b)
      return !['add', 'mul', 'div', 'min'].includes(e.op) || mayBeNegative(e.a) || mayBeNegative(e.b)
    default:
      return true
  }
}

/** An expression over old coordinates as one over new ones, accesses to split tensors included. */
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

/** An access whose indices are rewritten: at the iterators' own coordinates, in their part; others are looked up. */
function access(x: Load, c: PartRewrite, open: Open, written: boolean): Expr | undefined {
  const { split } = c
  const b = split.buffers.get(x.buffer)
  if (!b) return undefined
  const n = split.over.length
  const old = x.index.slice(b.start, b.start + n)
  const part = c.part === null ? null : split.instance.parts[c.part]!.instance
  if (part && c.part !== null && old.every((o, k) => sameExpr(o, part.inverse[k]!)))
    return load(
      b.parts[c.part]!,
      [
        ...x.index.slice(0, b.start),
        ...part.order.map((name) => variable(name)),
        ...x.index.slice(b.start + n),
      ],
      x.dtype,
      x.span,
    )
  const inRange = old.map((o, k) => isCoordinate(o, split.over[k]!, c, part, open))
  const found = { split, buffer: b, old, inRange, access: x }
  return written ? lookupTarget(found) : lookup(found)
}

/** Whether an index is known to be a coordinate of an old axis. */
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
  // Computed by another tensor's format.
  const natural = !mayBeNegative(e) && !hasLoad(e) && [...freeVars(e)].every((v) => open.extents.has(v))
  if (natural && open.holds.some((x) => sameExpr(x, lt(e, axis.extent)))) return true
  const k = part?.inverse.findIndex((i) => sameExpr(i, e)) ?? -1
  const old = k < 0 ? undefined : c.split.over[k]
  return old !== undefined && open.axes.has(old.name) && below(old.extent)
}
