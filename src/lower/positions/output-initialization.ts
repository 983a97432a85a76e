/**
 * Initialisation of outputs: decides on Stage I how each written buffer gets its initial value, exactly once per element, including empty
 * rows.
 * The first writer of a buffer decides. If it visits every element (each index is an S iterator over the whole axis), a reduction
 * initialises in its own loop nest, and an assignment needs no initial value. Otherwise the whole buffer is filled first, with the
 * identity of the reducer or the fill value. Temporaries that are private to one step of a nest, or read only where they were written,
 * need no fill.
 */
import { type Access, accessesOf } from '../../analysis/dependence/coordinate-accesses.ts'
import { linear } from '../../analysis/integers/linear.ts'
import { tileReach } from '../../analysis/integers/tiles.ts'
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis, DenseAxis } from '../../ir/coordinates/axis.ts'
import { arrayName, countedBy, isDense, isDenseRoot, isStored } from '../../ir/coordinates/axis.ts'
import { carriedIn, roundsAround } from '../../ir/coordinates/rounds.ts'
import type { Buffer1, Iter, Kernel1, Reduce1, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { readsIn, walkStmts1 } from '../../ir/coordinates/stage1-tree.ts'
import { constant, type Expr, int } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { matcher } from '../../ir/expressions/patterns.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { initialValue } from '../../ir/values/monoid.ts'
import { MASK_BITS } from '../../ir/values/packed-fields.ts'
import { formatOf } from '../../levels/index.ts'
import { isDefinitelyInitialized, members, type Writer } from './definite-initialization.ts'
import type { Levels } from './level-positions.ts'

interface Initialisation {
  /** Reductions that set their targets to the identity inside their own loop nest. */
  readonly inNest: ReadonlySet<Reduce1>
  /** Buffers to fill before the kernel, with their values. */
  readonly fills: readonly { readonly buffer: string; readonly value: Expr }[]
  /** Conditions that must be inside the reduction loops, after the initialisation of the element. */
  readonly inside: ReadonlySet<Expr>
}

/** Derives the initialisation of a kernel. `outside`: conditions that are placed around the loops regardless of `inside`. */
export function deriveInitialisation(
  kernel: Kernel1,
  outside: ReadonlySet<Expr> = new Set(),
): Initialisation {
  const first = firstWriters(kernel)
  const inside = new Set<Expr>()
  const inNest = new Set<Reduce1>()
  const fills: { buffer: string; value: Expr }[] = []
  const carried = carriedIn(kernel.body)
  const covered = (w: Writer): boolean =>
    !(carried.has(w.stmt.targets[w.target]!.buffer) && isRepeated(kernel, w)) &&
    (covers(kernel, w, outside, inside) || isOwn(kernel, w) || isDefinitelyInitialized(kernel, w))
  for (const buffer of kernel.buffers) {
    if (buffer.role === 'in' || buffer.role === 'inout') continue
    const w = first.get(buffer.name)
    if (buffer.placed) {
      if (w?.stmt.kind === 'reduce') inNest.add(w.stmt)
      continue
    }
    if (!w) {
      fills.push({ buffer: buffer.name, value: constant(buffer.fill, buffer.dtype) })
      continue
    }
    if (w.stmt.kind === 'assign') {
      if (!covered(w)) fills.push({ buffer: buffer.name, value: constant(buffer.fill, buffer.dtype) })
      continue
    }
    // A tuple is initialised in its nest only if this holds for all its targets.
    const whole = w.stmt.targets.every((t, k) => {
      const other = first.get(t.buffer)
      const role = kernel.buffers.find((b) => b.name === t.buffer)?.role
      return role !== 'inout' && other?.stmt === w.stmt && covered({ ...w, target: k })
    })
    if (whole) inNest.add(w.stmt)
    else
      fills.push({
        buffer: buffer.name,
        value: initialValue(w.stmt.reducer.identity[w.target]!, buffer.dtype),
      })
  }
  return { inNest, fills, inside }
}

/** True if a writer is in rounds; the initial value of a carried buffer must be written before them. */
const isRepeated = ({ body }: Kernel1, { enclosing }: Writer): boolean =>
  roundsAround(body, body.indexOf(enclosing[0]!))[0] > 0

function firstWriters(kernel: Kernel1): ReadonlyMap<string, Writer> {
  const first = new Map<string, Writer>()
  walkStmts1(kernel.body, (s, { iterations: enclosing, ifs, lets }) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    s.targets.forEach((t, target) => {
      const w = { stmt: s, target, enclosing, conditional: ifs.length > 0, lets }
      if (!first.has(t.buffer)) first.set(t.buffer, w)
    })
  })
  return first
}

/**
 * Returns true if each step of one nest accesses its own element of a local buffer only, and writes it first and unconditionally. Skipped
 * elements are then never read.
 */
function isOwn(kernel: Kernel1, w: Writer): boolean {
  const [nest, ...inner] = w.enclosing
  const { buffer } = w.stmt.targets[w.target]!
  if (w.conditional || !nest || kernel.buffers.find((b) => b.name === buffer)?.role !== 'local') return false
  if (nest.iters.some((x) => x.kind !== 'S')) return false
  if (inner.some((it) => it.where.length > 0 || it.iters.some((x) => x.kind !== 'R'))) return false
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const accesses = (body: readonly Stmt1[]): readonly Access[] =>
    accessesOf(body, axes).filter((a) => a.buffer === buffer)
  const inside = accesses([nest])
  const [first] = inside
  if (!first || first.mode === 'read' || accesses(kernel.body.filter((s) => s !== nest)).length > 0)
    return false
  const names = new Set(first.index.flatMap((e) => [...freeVars(e)]))
  if (!nest.iters.every((x) => names.delete(x.name)) || names.size > 0) return false
  const index = first.index.map(keyOf).join()
  return inside.every((a) => a.index.map(keyOf).join() === index)
}

function covers(kernel: Kernel1, w: Writer, outside: ReadonlySet<Expr>, inside: Set<Expr>): boolean {
  if (w.conditional) return false
  const target = w.stmt.targets[w.target]!
  const buffer = kernel.buffers.find((b) => b.name === target.buffer)
  invariant(buffer, `no buffer ${target.buffer}`)
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const iters = new Map<string, Iter>(
    w.enclosing.flatMap((it) => it.iters.flatMap((x) => members(x, axes)).map((x) => [x.name, x] as const)),
  )
  const where = w.enclosing.flatMap((it) => it.where)
  const used = new Set<Expr>()
  const tables: PermutationTables = (e) => {
    const table = e.kind === 'load' && kernel.buffers.find((b) => b.name === e.buffer && b.distinct)
    const distinctAxis = table ? axes.get(table.axes[0]!) : undefined
    return e.kind === 'load' && isDense(distinctAxis) && isDenseRoot(distinctAxis)
      ? { index: e.index[0]!, axis: distinctAxis }
      : undefined
  }
  const bare = target.index.every((e, k) => {
    const axis = axes.get(buffer.axes[k]!)!
    const permuted = isDenseRoot(axis) ? tables(e) : undefined
    return permuted && isDense(axis) && sameExpr(permuted.axis.extent, axis.extent)
      ? coversAxis(permuted.index, permuted.axis, axes, iters, where, used, tables)
      : coversAxis(e, axis, axes, iters, where, used, tables)
  })
  const combines = (c: Expr): boolean =>
    w.stmt.kind === 'reduce' && !outside.has(c) && onlyCombined(substitute(c, w.lets), iters, axes)
  if (!bare || onDiagonal(target.index, iters) || !where.every((c) => used.has(c) || combines(c)))
    return false
  for (const c of where) if (!used.has(c)) inside.add(c)
  return [...iters.values()].every((it) => runsFor(it, target.index, axes))
}

/** Returns true if an iterator occurs in two dimensions, and so visits only a diagonal. */
const onDiagonal = (index: readonly Expr[], iters: ReadonlyMap<string, Iter>): boolean =>
  [...iters.keys()].some((name) => index.filter((e) => mentions(e, name)).length > 1)

/** Returns true if an iterator has a step for each element: it occurs in the index, is a reduction, or has a positive constant extent. */
function runsFor(it: Iter, index: readonly Expr[], axes: ReadonlyMap<string, Axis>): boolean {
  if (it.kind === 'R' || index.some((e) => mentions(e, it.name))) return true
  const axis = axes.get(it.axis)
  return isDense(axis) && axis.extent.kind === 'const' && axis.extent.value > 0
}

/** Matches an index loaded from a permutation of a dense axis, and returns the index and the axis of the table; otherwise undefined. */
type PermutationTables = (e: Expr) => { readonly index: Expr; readonly axis: DenseAxis } | undefined

const product = matcher(['mul', 'x', 'y'])

function coversAxis(
  e: Expr,
  axis: Axis,
  axes: ReadonlyMap<string, Axis>,
  iters: ReadonlyMap<string, Iter>,
  where: readonly Expr[],
  used: Set<Expr>,
  permuted: PermutationTables,
): boolean {
  /** Returns the axis of a spatial iterator, or of the index into a permutation; otherwise undefined. */
  const spatial = (x: Expr): Axis | undefined => {
    const table = permuted(x)
    if (table) {
      const by = spatial(table.index)
      return isDense(by) && sameExpr(by.extent, table.axis.extent) ? by : undefined
    }
    const it = x.kind === 'var' ? iters.get(x.name) : undefined
    return it?.kind === 'S' ? axes.get(it.axis) : undefined
  }
  if (spatial(e)?.name === axis.name) return true
  // io * b + ii over ceildiv(extent, b) × b, guarded by `io * b + ii < extent`.
  const sum = linear(e)
  const terms = [...sum.terms.values()].map(({ term, coefficient }) => {
    const scaled = coefficient === 1 ? product(term) : undefined
    return { of: scaled?.x ?? term, stride: scaled?.y ?? int(coefficient) }
  })
  const digits = terms.flatMap(({ of, stride }) => {
    const by = spatial(of)
    return isDense(by) ? [{ of, stride, extent: by.extent }] : []
  })
  const vars = terms.flatMap(({ of }) => [...freeVars(of)])
  if (!isDense(axis) || sum.constant !== 0 || digits.length < terms.length) return false
  if (new Set(vars).size < vars.length) return false
  const reach = tileReach(digits, axis.extent)
  const trim = where.find(
    (c) => c.kind === 'binary' && c.op === 'lt' && keyOf(c.a) === keyOf(e) && sameExpr(c.b, axis.extent),
  )
  if (trim) used.add(trim)
  return reach === 'exact' || (reach !== undefined && trim !== undefined)
}

/**
 * Returns true if a condition only selects the values to combine. It then mentions a reduction iterator, and otherwise only iterators that
 * determine the length of this reduction, so it stays inside the reduction loop, after initialisation. Other conditions may exclude
 * elements.
 */
function onlyCombined(
  cond: Expr,
  iters: ReadonlyMap<string, Iter>,
  axes: ReadonlyMap<string, Axis>,
): boolean {
  const condIters = [...freeVars(cond)].flatMap((n) => iters.get(n) ?? [])
  const reduced = condIters.filter((it) => it.kind === 'R')
  const ends = reduced.flatMap((it) => countedBy(axes.get(it.axis)))
  return reduced.length > 0 && condIters.every((it) => it.kind === 'R' || ends.includes(it.axis))
}

// The buffers of a kernel over positions: declared buffers, tables and masks of formats, and index arrays of
// axes.

/** The length of a table: the extent of its dimension other than 1. */
export const tableLength = (shape: readonly Expr[]): Expr =>
  shape.reduce((a, c) => (a.kind === 'const' && a.value === 1 ? c : a), int(1))

/** Exclusive upper bound on the values of a table; for a permutation, its length. Undefined if unknown. */
export const valuesBelow = (
  b: Pick<Buffer1, 'distinct' | 'below'>,
  shape: readonly Expr[],
): Expr | undefined => (b.distinct ? tableLength(shape) : b.below)

/** Returns the declared buffers of a kernel and the index arrays of its axes. */
export function buffersOf(kernel: Kernel1, levels: Levels): Buffer[] {
  // Masks that no statement reads are omitted.
  const read = new Set(readsIn(kernel.body).map((l) => l.buffer))
  const out: Buffer[] = kernel.buffers.flatMap(
    ({ name, dtype, axes, role, fill, accumulate, ascending, positions, mask, span, ...b }) => {
      if (mask !== undefined && !read.has(name)) return []
      const shape = levels.shape(axes)
      const bits = mask === undefined ? {} : { packed: MASK_BITS }
      const known = { below: valuesBelow(b, shape), ascending, positions, ...bits }
      return { name, dtype, scope: 'global', role, shape, fill, accumulate, span, ...known }
    },
  )
  for (const a of kernel.axes) {
    if (!isStored(a)) continue
    for (const { array, length, values } of formatOf(a).indexArrays(a, levels))
      out.push({
        ...values,
        name: arrayName(a.name, array),
        dtype: 'i32',
        scope: 'global',
        role: 'index',
        shape: [length],
        fill: 0,
        accumulate: 'i32',
      })
  }
  return out
}
