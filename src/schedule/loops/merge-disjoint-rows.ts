/**
 * Horizontal fusion of nests with disjoint write sets. Nests over parts of a format that never have a row in common, in
 * one launch: none has to wait until another has set the elements to the identity. The one that visits every row leaves
 * out those that another part lists, and each other one begins with the identity itself. Which rows those are is asked of
 * the list, and only for rows of which the first part holds nothing.
 */

import { visitsAll } from '../../analysis/full-coverage.ts'
import { spatialNest } from '../../analysis/spatial-nest.ts'
import { accessesOf, type BufferAccess, offsetsIn, writesOf } from '../../ir/accesses.ts'
import { allocatedIn } from '../../ir/bindings.ts'
import { allocations, replaceLoop } from '../../ir/definitions.ts'
import { add, all, binary, constant, div, type Expr, int, load, lt, search, select } from '../../ir/expr.ts'
import { mentions, mentionsAny, substitute, walkExpr } from '../../ir/expr-tree.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../../ir/loops.ts'
import { isBuiltinReducer } from '../../ir/monoid.ts'
import { reductionsOf } from '../../ir/reductions.ts'
import { store, when, whenAll } from '../../ir/statement-builders.ts'
import { sameExpr } from '../../ir/structural-equality.ts'
import { type Body, replaceStmt, stmt, walkStmts } from '../../ir/tree.ts'
import type { Context } from '../context.ts'
import { decidingDimensions } from '../nest-dependence.ts'

export interface Started {
  readonly tops: readonly For[]
  /** Buffers of which each nest now writes elements of its own, and reads none. */
  readonly settled: ReadonlySet<string>
}

/** The nests as they may run at once where formats say so, the others as they were. */
export function startApart(cx: Context, nests: readonly For[]): Started {
  const settled = new Set<string>()
  let tops = nests
  for (const [k] of nests.entries()) {
    const top = tops[k]!
    const found = cx.kernel.buffers.flatMap((buffer) => listed(cx.kernel, buffer, tops, top) ?? [])
    const left = found.length > 0 ? leavingOut(cx, top, found) : undefined
    if (!left) continue
    for (const { buffer } of found) settled.add(buffer)
    const begin = found.flatMap((f) => f.others.map((o) => ({ of: o.top, own: o.access.stmt as Reduce })))
    tops = tops.map((t) =>
      t === top
        ? left
        : begin
            .filter(({ of }) => of === t)
            .reduce((r, { own }) => replaceStmt([r], own, () => stmt({ ...own, init: true }))[0] as For, t),
    )
  }
  return { tops, settled }
}

/** A buffer that several nests write, of which the others list the rows that they have. */
interface Listed extends Shared {
  readonly buffer: string
  readonly lists: readonly Buffer[]
}

function listed(kernel: Kernel2, buffer: Buffer, tops: readonly For[], first: For): Listed | undefined {
  const found = sharedBy(kernel, buffer, tops)
  if (found?.first.top !== first) return undefined
  const lists = found.others.flatMap((o) => listOf(kernel, o, found.row, buffer) ?? [])
  return lists.length === found.others.length ? { ...found, buffer: buffer.name, lists } : undefined
}

/** The one access of a nest to a buffer, which writes it. */
export interface Writer {
  readonly top: For
  readonly access: BufferAccess
}

export interface Shared {
  /** It starts what it combines at the identity, and so visits every element. */
  readonly first: Writer
  readonly others: readonly Writer[]
  readonly reducer: Reduce['reducer']
  /** The dimension that decides which of them has an element. */
  readonly row: number
}

export function sharedBy(kernel: Kernel2, { name }: Buffer, tops: readonly For[]): Shared | undefined {
  const uses = tops.map((top) => accessesOf([top]).filter((a) => a.buffer === name))
  if (uses.some((u) => u.length > 1 || u.some((a) => a.mode === 'read'))) return undefined
  const writers = tops.flatMap((top, k): Writer[] => uses[k]!.map((access) => ({ top, access })))
  const firsts = writers.filter((w) => starts(w) !== undefined)
  const others = writers.filter((w) => !firsts.includes(w))
  const [first] = firsts
  const reducer = first && starts(first)
  if (!first || !reducer || firsts.length > 1 || others.length === 0) return undefined
  const plain = others.every(({ access: { stmt: s } }) => s.kind === 'reduce' && isPlain(s, reducer))
  const pairs = writers.flatMap((w, k) =>
    writers.slice(k + 1).map((o) => decidingDimensions(kernel, w.access, o.access)),
  )
  const row = pairs[0]?.[0]
  const decided = row !== undefined && pairs.every((dims) => dims?.length === 1 && dims[0] === row)
  return plain && decided ? { first, others, reducer, row } : undefined
}

/** The reducer of a reduction that starts at the identity, or of the registers that hold what such a one has made. */
function starts({ top, access }: Writer): Reduce['reducer'] | undefined {
  const s = access.stmt
  if (s.kind === 'reduce') return s.init && isPlain(s, s.reducer) ? s.reducer : undefined
  if (s.kind !== 'store') return undefined
  // Registers of the type that the buffer accumulates in are rounded to the buffer's when they are stored.
  const value = s.value.kind === 'cast' ? s.value.x : s.value
  if (value.kind !== 'load') return undefined
  const { buffer } = value
  const register = allocations([top]).get(buffer)?.scope === 'register'
  const [made, more] = accessesOf([top]).filter((a) => a.buffer === buffer && a.mode === 'write')
  const r = register && !more && made?.stmt.kind === 'reduce' ? made.stmt : undefined
  return r?.init && isPlain(r, r.reducer) ? r.reducer : undefined
}

/** By one built-in reducer, into one element, which no other thread updates. */
const isPlain = (s: Reduce, { name }: Reduce['reducer']): boolean =>
  s.targets.length === 1 && s.reducer.name === name && isBuiltinReducer(name) && !s.atomic

/** The ascending list of the rows that a nest has all of: every column of every row that is listed. */
export function listOf(
  kernel: Kernel2,
  { top, access }: Writer,
  row: number,
  of: Buffer,
): Buffer | undefined {
  const { index, path } = access
  const own = index[row]!
  const list = own.kind === 'load' ? kernel.buffers.find((b) => b.name === own.buffer) : undefined
  if (own.kind !== 'load' || !list || !kernel.ascending?.includes(list.name)) return undefined
  const spatial = path.filter((l) => !l.reduce)
  // Down to the first loop that is reduced over, nothing stands around the loops; inside of it, what does decides on values.
  const first = path.findIndex((l) => l.reduce)
  const outside = first < 0 ? path : path.slice(0, first + 1)
  const inside: readonly Stmt[] = first < 0 ? [...path, access.stmt] : outside
  const chain = inside.every((s, k) => (k === 0 ? s === top : path[k - 1]!.body.includes(s)))
  const reduced = new Set(path.filter((l) => l.reduce).map((l) => l.var))
  const guards = path.flatMap((l) => l.guards.filter((g) => !mentionsAny(g, reduced)))
  const others = of.shape.map((_, d) => d).filter((d) => d !== row)
  const whole = visitsAll(
    [own.index[0]!, ...others.map((d) => index[d]!)],
    [list.shape[0]!, ...others.map((d) => of.shape[d]!)],
    spatial,
    guards,
    kernel.facts,
  )
  return chain && whole ? list : undefined
}

/**
 * The nest without the rows of the lists. What is left out is left out of the whole nest: nothing where it writes anything else
 * by rows, or other nests list other rows of one buffer than of another.
 */
function leavingOut(cx: Context, top: For, found: readonly Listed[]): For | undefined {
  const [{ first, row: dim, lists }] = found as readonly [Listed, ...Listed[]]
  const { path, index } = first.access
  const row = index[dim]!
  const at = path.findLastIndex((l) => mentions(row, l.var))
  const loop = path[at]
  if (!loop || path.slice(0, at + 1).some((l) => l.reduce)) return undefined
  const isAlike = (f: Listed): boolean =>
    f.first.access.path[at] === loop &&
    sameExpr(f.first.access.index[f.row]!, row) &&
    f.lists.length === lists.length &&
    f.lists.every((l) => lists.includes(l))
  const own = allocatedIn([top])
  const isWhole = [...writesOf([top])].every((w) => own.has(w) || found.some((f) => f.buffer === w))
  if (!isWhole || !found.every(isAlike)) return undefined
  const others = all(lists.map((l) => isMissing(l, row)))
  const held = heldOf(cx.kernel, loop, row)
  const empty = found.map(({ first: { access }, reducer: { identity } }) =>
    identity[0]!.kind === 'const'
      ? startOf(cx, access.path.slice(at + 1), access, constant(identity[0].value, identity[0].dtype))
      : null,
  )
  if (empty.includes(null)) return undefined
  const isSet = empty.every((e): e is Body => Array.isArray(e))
  const body: Body =
    held && isSet
      ? [when(lt(int(0), held), loop.body, [when(others, empty.flat())])]
      : [when(others, loop.body)]
  return replaceLoop([top], loop.var, (l) => stmt({ ...l, body }))[0] as For
}

/** Whether an ascending list, up to `length`, does not hold a coordinate. */
export function isMissing({ name, shape }: Buffer, coordinate: Expr, length = shape[0]!): Expr {
  const place = search('lower', name, int(0), length, coordinate)
  return binary('ne', select(lt(place, length), load(name, [place], 'i32'), int(-1)), coordinate)
}

/**
 * How many positions of a row a part has, where that is how often everything that is combined inside of the loop is: then
 * none are nothing, and any are the row's. Rows are those positions' parents, one each.
 */
export function heldOf(kernel: Kernel2, loop: For, row: Expr): Expr | undefined {
  const offsets = offsetsIn(kernel.buffers)
  const at = row.kind === 'load' ? row.index[0]! : row
  let held: Expr | undefined
  walkStmts(loop.body, (s) => {
    if (s.kind !== 'for' || !s.reduce) return
    walkExpr(s.extent, (e) => {
      if (e.kind !== 'binary' || e.op !== 'sub' || e.a.kind !== 'load' || e.b.kind !== 'load') return
      const [to, from] = [e.a.index[0]!, e.b.index[0]!]
      const segment = e.a.buffer === e.b.buffer && offsets.has(e.a.buffer)
      if (segment && sameExpr(from, at) && sameExpr(to, add(at, int(1)))) held ??= e
    })
  })
  const segment = held
  if (!segment) return undefined
  const isOver = ({ reduce, extent }: For): boolean => {
    if (!reduce) return false
    const by =
      extent.kind === 'binary' && extent.op === 'div' && extent.b.kind === 'const' ? extent.b.value : 1
    return sameExpr(extent, div(add(segment, int(by - 1)), int(by)))
  }
  const all = reductionsOf([loop])
  const counted = (r: Reduce): boolean => {
    let over = false
    walkStmts([loop], (s, path) => {
      if (s === r) over = path.some(isOver)
    })
    return over
  }
  return all.length > 0 && all.every((r) => counted(r.reduce)) ? segment : undefined
}

/** The elements that a nest writes inside of a loop, at the identity. */
function startOf(
  cx: Context,
  inside: readonly For[],
  { index, buffer }: BufferAccess,
  identity: Expr,
): Body | undefined {
  const copies = spatialNest(
    inside,
    index,
    (base) => cx.fresh(base),
    (renamed) => [
      store(
        buffer,
        index.map((e) => substitute(e, renamed)),
        identity,
      ),
    ],
  )
  return copies && whenAll(copies.outside, copies.nest)
}
