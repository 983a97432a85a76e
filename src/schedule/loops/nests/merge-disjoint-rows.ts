/**
 * Horizontal fusion of loop nests with disjoint write sets: loop nests over parts of a format without common rows run
 * in one launch, and no loop nest waits until another has initialised the elements. The loop nest that visits every row
 * skips the rows that another part lists, and each other loop nest initialises its rows itself. The lists are searched
 * only for rows of which the first part has no element.
 */

import { spatialNest, visitsAll } from '../../../analysis/dependence/full-coverage.ts'
import {
  add,
  all,
  binary,
  constant,
  div,
  type Expr,
  int,
  load,
  lt,
  search,
  select,
} from '../../../ir/expressions/expr.ts'
import { mentions, mentionsSome, substitute, walkExpr } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { accessesOf, type BufferAccess, offsetsIn, writesOf } from '../../../ir/statements/accesses.ts'
import { allocatedNames } from '../../../ir/statements/bindings.ts'
import { allocations, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../../../ir/statements/loops.ts'
import { reductionsOf } from '../../../ir/statements/reductions.ts'
import { store, when, whenAll } from '../../../ir/statements/statement-builders.ts'
import { type Body, replaceStmt, stmt, walkStmts } from '../../../ir/statements/tree.ts'
import { isBuiltinReducer } from '../../../ir/values/monoid.ts'
import { decidingDimensions } from '../../legality/nest-dependence.ts'
import type { Context } from '../../state/context.ts'

export interface Started {
  readonly tops: readonly For[]
  /** Buffers of which the loop nests write disjoint elements, and which they do not read. */
  readonly settled: ReadonlySet<string>
}

/** Returns the loop nests, changed so that they may run concurrently if formats state that their rows are disjoint. */
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

/** A buffer that several loop nests write, with the lists of rows of all but the first. */
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

/** The only access of a loop nest to a buffer: a write. */
export interface Writer {
  readonly top: For
  readonly access: BufferAccess
}

export interface Shared {
  /** The writer that initialises the elements, and therefore visits all of them. */
  readonly first: Writer
  readonly others: readonly Writer[]
  readonly reducer: Reduce['reducer']
  /** The dimension that determines which writer has an element. */
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

/** The reducer of a reduction that starts at the identity, or of the registers with its result. */
function starts({ top, access }: Writer): Reduce['reducer'] | undefined {
  const s = access.stmt
  if (s.kind === 'reduce') return s.init && isPlain(s, s.reducer) ? s.reducer : undefined
  if (s.kind !== 'store') return undefined
  // Registers of the accumulation type are rounded to the buffer's type when they are stored.
  const value = s.value.kind === 'cast' ? s.value.x : s.value
  if (value.kind !== 'load') return undefined
  const { buffer } = value
  const register = allocations([top]).get(buffer)?.scope === 'register'
  const [made, more] = accessesOf([top]).filter((a) => a.buffer === buffer && a.mode === 'write')
  const r = register && !more && made?.stmt.kind === 'reduce' ? made.stmt : undefined
  return r?.init && isPlain(r, r.reducer) ? r.reducer : undefined
}

const isPlain = (s: Reduce, { name }: Reduce['reducer']): boolean =>
  s.targets.length === 1 && s.reducer.name === name && isBuiltinReducer(name) && !s.atomic

/** Returns the ascending list of the rows that a loop nest has with every column; undefined if there is none. */
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
  // The loops are perfectly nested down to the first reduction loop. Conditions inside of that loop decide on values
  // only.
  const first = path.findIndex((l) => l.reduce)
  const outside = first < 0 ? path : path.slice(0, first + 1)
  const inside: readonly Stmt[] = first < 0 ? [...path, access.stmt] : outside
  const chain = inside.every((s, k) => (k === 0 ? s === top : path[k - 1]!.body.includes(s)))
  const reduced = new Set(path.filter((l) => l.reduce).map((l) => l.var))
  const guards = path.flatMap((l) => l.guards.filter((g) => !mentionsSome(g, reduced)))
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

/** The rows that it skips must be those of all data that it writes. */
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
  const own = allocatedNames([top])
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

/** Returns the condition that an ascending list, up to `length`, does not contain a coordinate. */
export function isMissing({ name, shape }: Buffer, coordinate: Expr, length = shape[0]!): Expr {
  const place = search('lower', name, int(0), length, coordinate)
  return binary('ne', select(lt(place, length), load(name, [place]), int(-1)), coordinate)
}

/**
 * Returns the number of positions of a row in a part, if all reductions inside of the loop run over exactly these
 * positions, so that a row without positions combines nothing; undefined otherwise. Each row is the parent of its
 * positions.
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
  return all.length > 0 && all.every((r) => r.path.some(isOver)) ? segment : undefined
}

/** Sets the elements which a loop nest writes inside of a loop to the identity; undefined if loops are not repeatable. */
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
