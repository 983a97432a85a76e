/**
 * Scalar promotion (register promotion). Invariant reached: an element that all iterations of a loop update, at the same index, is kept in
 * a register during the outermost such loop. No other access to the buffer occurs in this loop.
 * The pass runs for targets whose compilers do not do this. Registers are at least as precise as the declared type, so values are rounded
 * once, at the store after the loop.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, int, load, lt } from '../../ir/expressions/expr.ts'
import { mentionsSome, readsSome, someExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { reuseIfSame } from '../../ir/lists.ts'
import { groupBy } from '../../ir/memoize.ts'
import { accessesOf, type BufferAccess, targetsOf, writesOf } from '../../ir/statements/accesses.ts'
import { boundVarsOf, redirectAccesses } from '../../ir/statements/bindings.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import { alloc, local, store, when } from '../../ir/statements/statement-builders.ts'
import { type Body, exprsOf, mapBodies, someStmt } from '../../ir/statements/tree.ts'
import { type Dtype, isHalf } from '../../ir/values/dtype.ts'

export function promoteToScalars(body: Body, buffers: readonly Buffer[], names: Names): Body {
  const threads = someStmt(body, (s) => exprsOf(s).some((e) => someExpr(e, (x) => x.kind === 'builtin')))
  const global = new Map(buffers.filter((b) => isWhole(b.dtype)).map((b) => [b.name, b]))
  return promoted(body, { global, threads, names, extents: new Map(), values: new Map() })
}

interface Context {
  readonly global: ReadonlyMap<string, Buffer>
  /** True if the launch has several threads. */
  readonly threads: boolean
  readonly names: Names
  /** Extents of the enclosing loops, by variable. */
  readonly extents: ReadonlyMap<string, Expr>
  /** Values of the enclosing lets, by name. */
  readonly values: ReadonlyMap<string, Expr>
}

/** Returns true for types that registers represent like memory, except for float rounding. Narrow types accumulate as declared. */
const isWhole = (dtype: Dtype): boolean => !isHalf(dtype) && dtype !== 'i8' && dtype !== 'u8'

/** Statements before and after a loop whose elements are in registers. */
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
    // If only the loop accesses the element, it may not exist, or belong to another thread, when the loop does not run.
    const guarded: Held = { before: [], after: [] }
    if (s.kind === 'for')
      for (const element of elementsOf(s, cx)) {
        const { buffer, index } = element
        const isAccessible = isWritten(body, element) || isAlwaysThere(element, cx)
        if (!isAccessible && !isWritten(s.body, element)) continue
        const b = cx.global.get(buffer)!
        const register = local(cx.names.fresh(`${buffer}_at`), b.dtype)
        const registerLoad = load(register.name, [int(0)], b.dtype)
        loop = redirectAccesses([loop], (at) => (at.buffer === buffer ? registerLoad : undefined))[0]!
        const start = isAccessible ? takeStart(out, element) : undefined
        const { before, after } = isAccessible ? around : guarded
        before.push(alloc(register), store(register.name, [int(0)], start ?? load(buffer, index, b.dtype)))
        after.push(store(buffer, index, registerLoad))
      }
    const within =
      s.kind === 'for' ? { ...cx, extents: new Map([...cx.extents, [s.var, s.extent] as const]) } : cx
    const inside = mapBodies(loop, (inner) => promoted(inner, within))
    const run = [...guarded.before, inside, ...guarded.after]
    const sure = s.kind !== 'for' || guarded.before.length === 0 || runs(s.extent)
    out.push(...around.before, ...(sure ? run : [when(lt(int(0), s.extent), run)]), ...around.after)
  }
  return reuseIfSame(body, out)
}

type Element = Pick<BufferAccess, 'buffer' | 'index'>

/** Elements that a loop reads and writes at one loop-invariant index. */
function elementsOf(loop: For, cx: Context): readonly Element[] {
  const isCollective = (s: Stmt): boolean =>
    s.kind === 'barrier' || s.kind === 'instr' || (s.kind === 'let' && s.lane !== undefined)
  if (someStmt([loop], isCollective)) return []
  const accessesByBuffer = groupBy(accessesOf([loop]), (a) => a.buffer)
  const written = writesOf([loop])
  const bound = boundVarsOf([loop])
  const varies = (e: Expr): boolean => mentionsSome(e, bound) || readsSome(e, written)
  return [...written].flatMap((buffer): Element[] => {
    const all = accessesByBuffer.get(buffer)!
    const { index } = all[0]!
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

/** Returns true if a statement of this list writes the element, so the element exists and belongs to this thread. */
const isWritten = (body: Body, element: Element): boolean =>
  body.some((s) => targetsOf(s).some((t) => isAt(t, element)))

/** Returns true if the element exists for all sizes, and only one thread runs. */
function isAlwaysThere({ buffer, index }: Element, { threads, global, values, extents }: Context): boolean {
  if (threads) return false
  const expanded = (e: Expr): Expr => {
    const next = substitute(e, values)
    return next === e ? e : expanded(next)
  }
  const end = (leaf: Expr): Expr | undefined => {
    const extent = leaf.kind === 'var' ? extents.get(leaf.name) : undefined
    return extent && expanded(extent)
  }
  return new Facts({ end }).below(expanded(index[0]!), expanded(global.get(buffer)!.shape[0]!))
}

/** Removes the last store of a constant to the element from `before`, and returns the constant; undefined if there is none. */
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
