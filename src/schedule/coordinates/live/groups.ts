/**
 * Visited positions of lists that are built at run time. Each loop ends with its list. If the format has a mask and
 * groups are filled up with a repeated coordinate, whole groups are visited. The coordinate is then visited again, so
 * statements that must not count it twice are guarded by the length of the list, like statements under masks of bound
 * data (`masked-statements.ts`).
 */

import { accessesOf } from '../../../analysis/dependence/coordinate-accesses.ts'
import { givenBy, isIdentity, writtenIn } from '../../../analysis/sparsity/fill-folding.ts'
import { startOf, writesOf } from '../../../analysis/sparsity/writes.ts'
import type { StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Iteration, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import {
  type Body1,
  iterationsOf,
  mapBodies1,
  rewriteBody1,
  rewriteStmts1,
  walkStmts1,
  writersIn,
} from '../../../ir/coordinates/stage1-tree.ts'
import {
  all,
  bool,
  conjuncts,
  constant,
  div,
  type Expr,
  int,
  isOne,
  type Load,
  mod,
  variable,
} from '../../../ir/expressions/expr.ts'
import { freeVars, substitute } from '../../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import type { Position, Split, SplitBuffer } from '../as/tensor-split.ts'
import { inRange } from '../legality/axis-prefixes.ts'
import { fillOf, type Masked, maskedBody } from '../legality/masked-statements.ts'
import type { LiveFormat } from './format.ts'
import { type Arrays, placeOf, slotAxes } from './lists.ts'
import { WORD } from './mark.ts'

/** The positions of a list, for rewriting the iterations over them. */
interface Positions {
  readonly axis: string
  /**
   * Builds the condition that a position is used, not filled up. Each statement needs its own expression, because
   * conditions identify statements.
   */
  readonly held: () => Expr
  /** Temporaries over the part's axes; `order` has these axes in their order. */
  readonly along: ReadonlyMap<string, SplitBuffer>
  readonly order: readonly string[]
}

const visits = (s: Stmt1, { axis }: Positions): s is Iteration =>
  s.kind === 'iterate' && s.iters.some((x) => x.axis === axis)

/** Adds the condition that ends loops after the last listed coordinate. */
export const ended = (body: Body1, p: Positions, only = (_: Stmt1): boolean => true): Body1 =>
  rewriteStmts1(body, (s) => (visits(s, p) && only(s) ? { ...s, where: [p.held(), ...s.where] } : undefined))

/** Returns whether an access is to a temporary at the visited position. */
const isOwn = (t: Load, { along, order }: Positions): boolean => {
  const start = along.get(t.buffer)?.start
  if (start === undefined) return false
  return order.every((name, k) => {
    const e = t.index[start + k]
    return e?.kind === 'var' && e.name === name
  })
}

/** Makes iterations visit whole groups, except those that write at the listed coordinate: they write once. */
export function inGroups(body: Body1, p: Positions): Body1 {
  const visiting = iterationsOf(body).filter((s) => visits(s, p))
  const written = (s: Stmt1): readonly Load[] => writersIn([s]).flatMap((w) => w.targets)
  const scatters = new Set<Stmt1>(
    visiting.filter((s) => written(s).some((t) => !isOwn(t, p) && freeVars(t).has(p.axis))),
  )
  const whole = visiting.filter((s) => !scatters.has(s))
  const clean = cleanIn(body, whole, p)
  const fills = new Map(
    [...clean].map((name) => {
      const { fill, dtype } = p.along.get(name)!.buffer
      return [name, constant(fill, dtype)] as const
    }),
  )
  const known = (l: Load): Expr | undefined => (isOwn(l, p) ? fills.get(l.buffer) : undefined)
  const plans = new Map<Stmt1, Masked>()
  walkStmts1(body, (s, around) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    if (!around.iterations.some((it) => whole.includes(it))) return
    const given = givenBy(writtenIn(s, around), known)
    if (s.kind === 'assign') {
      const restored = new Map(
        given.flatMap(({ value, factors }, k) => {
          const { buffer } = s.targets[k]!
          const fill = fills.get(buffer)
          const isKept = !fill || (factors.length === 0 && isIdentity(value, fill))
          return isKept ? [] : [[k, fillOf(p.along.get(buffer)!.buffer, s.values[k]!)] as const]
        }),
      )
      if (restored.size > 0) plans.set(s, { how: 'restore', held: p.held(), fills: restored })
      return
    }
    const isIdle = given.every((g, k) => g.isIdentity || isOwn(s.targets[k]!, p))
    if (!isIdle) plans.set(s, { how: 'combine', held: p.held() })
  })
  return ended(maskedBody(body, plans), p, (s) => scatters.has(s))
}

/** The temporaries that hold their fill value at unused positions; others hold arbitrary values there. */
function cleanIn(body: Body1, whole: readonly Iteration[], p: Positions): ReadonlySet<string> {
  const out = new Set(p.along.keys())
  walkStmts1(body, (s, { iterations }) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    const isRestored = s.kind === 'assign' && iterations.some((it) => whole.includes(it))
    for (const t of s.targets) if (!isRestored) out.delete(t.buffer)
  })
  return out
}

// Simplifications in iterations over a format that is built at run time. Temporaries that only these
// iterations use need the capacity of the lists only, and a test whether the tensor holds a value is true.

interface LiveTensor {
  readonly buffer: Buffer1
  /** The tensor's axes that the format replaces, and those that the kernel's text has in their place (`chosen`). */
  readonly over: readonly StoredAxis[]
  readonly chosen: readonly StoredAxis[]
  /** Index of the first statement that may iterate over the new axes. */
  readonly from: number
}

/**
 * Returns the temporaries over the same axes that are written at the coordinates of iterations over the tensor only.
 * From now on, such a temporary is stored over the tensor's positions, and a read at an unlisted coordinate returns the
 * temporary's initial value.
 */
export function temporariesAlong(
  kernel: Kernel1,
  { buffer, over, chosen, from }: LiveTensor,
): readonly SplitBuffer[] {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const early = new Set(accessesOf(kernel.body.slice(0, from), axes).map((a) => a.buffer))
  const accesses = accessesOf(kernel.body.slice(from), axes)
  return kernel.buffers.flatMap((b): readonly SplitBuffer[] => {
    const start = b.axes.indexOf(chosen[0]!.name)
    const isOver = start >= 0 && chosen.every((a, k) => b.axes[start + k] === a.name)
    const mine = accesses.filter((a) => a.buffer === b.name)
    const writes = mine.filter((a) => a.mode !== 'read')
    if (b === buffer || b.role !== 'local' || !isOver || early.has(b.name) || writes.length === 0) return []
    const isThere = writes.every((a) =>
      over.every((axis, k) => {
        const e = a.index[start + k]!
        const by = e.kind === 'var' ? a.around.findLast((o) => o.iter.name === e.name) : undefined
        return by?.iter.axis === axis.name
      }),
    )
    return isThere
      ? [
          {
            buffer: b,
            parts: [b.name],
            start,
            absent: constant(startOf(b, writesOf(kernel)) ?? b.fill, b.dtype),
          },
        ]
      : []
  })
}

/** Returns a predicate: the k-th index of an access is an iterator of the statement over the k-th axis. */
export function atIterators(s: Stmt1, over: readonly StoredAxis[]): (index: Expr, k: number) => boolean {
  const iters = iterationsOf([s]).flatMap((it) => it.iters)
  return (e, k) => {
    const by = e.kind === 'var' ? iters.filter((x) => x.name === e.name) : []
    return by.length > 0 && by.every((x) => x.axis === over[k]!.name)
  }
}

/**
 * Returns the statement without conditions `P[e, t] != 0` at the iterators, of `if` and of `where`: each listed element
 * holds a value.
 */
export function whereHeld(s: Stmt1, buffer: Buffer1, over: readonly StoredAxis[]): Stmt1 {
  const isAt = atIterators(s, over)
  const isElement = (e: Expr): boolean => e.kind === 'load' && e.buffer === buffer.name && e.index.every(isAt)
  const isFill = (e: Expr): boolean => e.kind === 'const' && e.value === buffer.fill
  const answered = rewriteBody1([s], (e) =>
    e.kind === 'binary' &&
    e.op === 'ne' &&
    ((isElement(e.a) && isFill(e.b)) || (isFill(e.a) && isElement(e.b)))
      ? bool(true)
      : undefined,
  )
  return opened(answered)[0]!
}

const isOpen = (e: Expr): boolean => !isOne(e)

const opened = (body: Body1): Body1 =>
  body.flatMap((s) => {
    const inner = mapBodies1(s, opened)
    if (inner.kind === 'iterate') return { ...inner, where: inner.where.flatMap(conjuncts).filter(isOpen) }
    if (inner.kind !== 'if') return inner
    const left = conjuncts(inner.cond).filter(isOpen)
    return left.length > 0 ? { ...inner, cond: all(left) } : inner.then
  })

/**
 * Returns a function from coordinates to positions in the lists; `ends` is the condition that a position of `part` is
 * visited.
 */
export function positionAt(
  format: LiveFormat,
  arrays: Arrays,
  part: FormatInstance,
  over: Split['over'],
  ends: Expr,
): (coordinates: readonly Expr[]) => Position {
  const visited = [ends, ...part.inverse.flatMap((e, k) => inRange(e, over[k]!, part))]
  const [words, chunks, parts] = [arrays.marks, arrays.bases, arrays.starts].map((b) => b.axes.at(-1)!)
  return (coordinates) => {
    const at = new Map(over.map((a, k) => [a.name, coordinates[k]!]))
    const digits = [...format.outer, ...format.inner].map(
      (a) => [a.name, substitute(format.digits.get(a.name)!, at)] as const,
    )
    const listed = substitute(format.digits.get(format.list)!, at)
    const word = div(listed, int(WORD))
    const inWords = { [words!]: word, [chunks!]: div(word, int(WORD)), [parts!]: mod(word, int(WORD)) }
    const { isMarked, index } = placeOf(
      format,
      arrays,
      { ...Object.fromEntries(digits), ...inWords },
      mod(listed, int(WORD)),
    )
    const places = new Map([...digits, ...slotAxes(format).map((name, k) => [name, index[k]!] as const)])
    const held = [isMarked, ...visited.map((c) => substitute(c, places))]
    return { held: all(held), index: part.order.map((name) => places.get(name) ?? variable(name)) }
  }
}
