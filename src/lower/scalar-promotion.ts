/**
 * Scalar promotion (register promotion). Invariant reached: an element that all iterations of a loop combine into, and that
 * they all name alike, is in a register while the loop runs (scalar promotion). It is the outermost such loop, and nothing
 * else of the buffer is touched in it.
 *
 * For targets whose registers hold at least what the declared type does and where no compiler does it: rounding comes once,
 * with the store behind the loop.
 */

import { accessesOf, type BufferAccess, targetsOf } from '../ir/accesses.ts'
import { boundVarsOf } from '../ir/bindings.ts'
import type { Names } from '../ir/bound-names.ts'
import { type Dtype, isHalf } from '../ir/dtype.ts'
import { type Expr, int, load, lt } from '../ir/expr.ts'
import { mentionsSome, readsSome, someExpr } from '../ir/expr-tree.ts'
import { reuseIfSame } from '../ir/lists.ts'
import type { Buffer, For, Stmt } from '../ir/loops.ts'
import { alloc, local, store, when } from '../ir/statement-builders.ts'
import { keyOf } from '../ir/structural-equality.ts'
import {
  type Body,
  bodiesOf,
  exprsOf,
  rewriteStmts,
  someStmt,
  stmt,
  walkStmts,
  withBodies,
} from '../ir/tree.ts'

export function promoteToScalars(body: Body, buffers: readonly Buffer[], names: Names): Body {
  const threads = someStmt(body, (s) => exprsOf(s).some((e) => someExpr(e, (x) => x.kind === 'builtin')))
  const global = new Map(buffers.filter((b) => isWhole(b.dtype)).map((b) => [b.name, b]))
  return promoted(body, { global, threads, names, extents: new Map(), values: new Map() })
}

interface Context {
  readonly global: ReadonlyMap<string, Buffer>
  /** Whether there are several threads. */
  readonly threads: boolean
  readonly names: Names
  /** Of the loops around, by their variables. */
  readonly extents: ReadonlyMap<string, Expr>
  /** Of the names around. */
  readonly values: ReadonlyMap<string, Expr>
}

/** A register holds values of the type as memory does, but for the rounding of floats; narrow types accumulate as declared. */
const isWhole = (dtype: Dtype): boolean => !isHalf(dtype) && dtype !== 'i8' && dtype !== 'u8'

/** What comes before a loop whose elements are in registers, and what comes after it. */
interface Held {
  readonly before: Stmt[]
  readonly after: Stmt[]
}

const runs = (extent: Expr): boolean => extent.kind === 'const' && extent.value > 0

function promoted(body: Body, outside: Context): Body {
  const out: Stmt[] = []
  const values = new Map(outside.values)
  const cx: Context = { ...outside, values }
  for (const s of body) {
    if (s.kind === 'let') values.set(s.name, s.value)
    let loop = s
    const around: Held = { before: [], after: [] }
    // An element that only the loop touches is not there, or another thread's, where the loop does not run.
    const guarded: Held = { before: [], after: [] }
    if (s.kind === 'for')
      for (const element of elementsOf(s, cx)) {
        const { buffer, index } = element
        const known = isWritten(body, element) || isAlwaysThere(element, cx)
        if (!known && !isWritten(s.body, element)) continue
        const b = cx.global.get(buffer)!
        const register: Buffer = {
          ...local(cx.names.fresh(`${buffer}_at`), b.dtype, [int(1)]),
          scope: 'register',
        }
        const registerLoad = load(register.name, [int(0)], b.dtype)
        loop = inRegister(loop, element, registerLoad)
        const start = known ? takeStart(out, element) : undefined
        const { before, after } = known ? around : guarded
        before.push(alloc(register), store(register.name, [int(0)], start ?? load(buffer, index, b.dtype)))
        after.push(store(buffer, index, registerLoad))
      }
    const within =
      s.kind === 'for' ? { ...cx, extents: new Map([...cx.extents, [s.var, s.extent] as const]) } : cx
    const inside = withBodies(
      loop,
      bodiesOf(loop).map((inner) => promoted(inner, within)),
    )
    const run = [...guarded.before, inside, ...guarded.after]
    const sure = s.kind !== 'for' || guarded.before.length === 0 || runs(s.extent)
    out.push(...around.before, ...(sure ? run : [when(lt(int(0), s.extent), run)]), ...around.after)
  }
  return reuseIfSame(body, out)
}

type Element = Pick<BufferAccess, 'buffer' | 'index'>

/** What a loop reads and writes, the same element in all of its iterations. */
function elementsOf(loop: For, cx: Context): readonly Element[] {
  let alone = true
  walkStmts([loop], (s) => {
    if (s.kind === 'barrier' || s.kind === 'instr' || (s.kind === 'let' && s.lane)) alone = false
  })
  if (!alone) return []
  const accesses = accessesOf([loop])
  const of = new Map<string, BufferAccess[]>()
  const written = new Set<string>()
  for (const a of accesses) {
    of.set(a.buffer, [...(of.get(a.buffer) ?? []), a])
    if (a.mode === 'write') written.add(a.buffer)
  }
  const bound = boundVarsOf([loop])
  const varies = (e: Expr): boolean => mentionsSome(e, bound) || readsSome(e, written)
  return [...written].flatMap((buffer): Element[] => {
    const all = of.get(buffer)!
    const [{ index }] = all as [BufferAccess]
    if (!cx.global.has(buffer) || !all.some((a) => a.mode === 'read') || !index[0] || varies(index[0]))
      return []
    const sameElement = all.every(
      (a) =>
        !a.whole &&
        (a.mode === 'read' || a.stmt.kind === 'store') &&
        a.index[0] !== undefined &&
        keyOf(a.index[0]) === keyOf(index[0]!),
    )
    return sameElement ? [{ buffer, index }] : []
  })
}

const isAt = (a: Element, b: Element): boolean =>
  a.buffer === b.buffer && keyOf(a.index[0]!) === keyOf(b.index[0]!)

/** Whether statements of this list itself write the element: it is there, and this thread's own. */
const isWritten = (body: Body, element: Element): boolean =>
  body.some((s) => targetsOf(s).some((t) => isAt(t, element)))

/** Whether the element is there whatever the sizes are, and nobody else's. */
function isAlwaysThere({ buffer, index }: Element, cx: Context): boolean {
  const length = cx.global.get(buffer)!.shape[0]
  const [at] = index
  return !cx.threads && at !== undefined && length !== undefined && isBelow(at, length, cx)
}

/** Whether a place is one of so many: a constant, or what the loops around run over, digit by digit. */
function isBelow(place: Expr, length: Expr, cx: Context): boolean {
  const behind = (e: Expr): Expr => {
    const value = e.kind === 'var' ? cx.values.get(e.name) : undefined
    return value ? behind(value) : e
  }
  const [at, n] = [behind(place), behind(length)]
  if (at.kind === 'const') return n.kind === 'const' && at.value < n.value
  if (at.kind === 'var') {
    const extent = cx.extents.get(at.name)
    return extent !== undefined && keyOf(behind(extent)) === keyOf(n)
  }
  if (at.kind !== 'binary' || at.op !== 'add' || n.kind !== 'binary' || n.op !== 'mul') return false
  const high = behind(at.a)
  return (
    high.kind === 'binary' &&
    high.op === 'mul' &&
    keyOf(high.b) === keyOf(n.b) &&
    isBelow(high.a, n.a, cx) &&
    isBelow(at.b, n.b, cx)
  )
}

/** The constant that the element was just set to, with the store taken back: another one follows. */
function takeStart(before: Stmt[], element: Element): Expr | undefined {
  for (let k = before.length - 1; k >= 0; k--) {
    const s = before[k]!
    if (s.kind === 'store' && isAt(s, element)) {
      const { value } = s
      if (value.kind !== 'const') return undefined
      before.splice(k, 1)
      return value
    }
    if (s.kind !== 'let' && s.kind !== 'alloc' && s.kind !== 'store') return undefined
    if (accessesOf([s]).some((a) => a.buffer === element.buffer)) return undefined
  }
  return undefined
}

function inRegister(loop: Stmt, { buffer }: Element, registerLoad: Expr & { kind: 'load' }): Stmt {
  return rewriteStmts([loop], {
    expr: (e) => (e.kind === 'load' && e.buffer === buffer ? registerLoad : undefined),
    stmt: (s) =>
      s.kind === 'store' && s.buffer === buffer
        ? stmt({ ...s, buffer: registerLoad.buffer, index: registerLoad.index })
        : undefined,
  })[0]!
}
