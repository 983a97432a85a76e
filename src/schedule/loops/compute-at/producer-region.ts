/**
 * Bounds inference of a producer: the iterations of its loops that compute the inputs of one iteration of the
 * consumer's loop, and the producer restricted to these iterations.
 */

import { type Space, segmentOf } from '../../../analysis/dependence/subscript-injectivity.ts'
import type { Moving } from '../../../analysis/integers/ends-over-loops.ts'
import { isAtMost, premisesIn, spanOf, widthOf } from '../../../analysis/integers/ends-over-loops.ts'
import {
  constantSum,
  type Linear,
  linear,
  loopMap,
  minus,
  plus,
  sameSum,
  shift,
  sumExpr,
} from '../../../analysis/integers/linear.ts'
import type { Premises } from '../../../analysis/integers/non-negative.ts'
import { add, type Expr, ge, int, isZero, lt, sub, variable } from '../../../ir/expressions/expr.ts'
import { freeVars, mentions, mentionsSome, readsSome, substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { accessesOf, type BufferAccess, offsetsIn, writesOf } from '../../../ir/statements/accesses.ts'
import { boundVarsOf, substituteStmts } from '../../../ir/statements/bindings.ts'
import { type LoopLocation, loopsOf } from '../../../ir/statements/definitions.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { when } from '../../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, stmt, withBodies } from '../../../ir/statements/tree.ts'
import { overParams } from '../../legality/checks.ts'
import type { Context } from '../../state/context.ts'

/** The iterations of a producer's loop that one iteration of the consumer's loop needs: `low .. low + width`. */
interface Window {
  readonly low: Expr
  /** The number of iterations; null for the single iteration `low`. */
  readonly width: Expr | null
  /** Dimensions by buffer name: the dimension that the loop runs over, and the first index of the window in it. */
  readonly dimensions: ReadonlyMap<string, { readonly d: number; readonly low: Expr }>
}

/** Windows by the variables of the producer's loops. */
export type Windows = ReadonlyMap<string, Window>

const premisesAt = (cx: Context, { loop, path }: LoopLocation, windows: readonly For[] = []): Premises =>
  premisesIn(
    [...path, loop, ...windows],
    cx.kernel.buffers,
    new Set(cx.kernel.params.flatMap((p) => (p.kind === 'size' ? [p.name] : []))),
  )

/** Returns the windows of the producer's loops; a loop without a window runs completely. */
export function windowsOf(
  cx: Context,
  producer: For,
  at: LoopLocation,
  produced: ReadonlySet<string>,
): Windows {
  const { body } = at.loop
  const inner = loopMap(loopsOf(body))
  const [bound, written] = [boundVarsOf(body), writesOf([producer, ...body])]
  const moving: Moving = {
    loop: (name) => inner.get(name),
    changes: (e) => mentionsSome(e, bound) || readsSome(e, written),
  }
  const premises = premisesAt(cx, at)
  const indptr = offsetsIn(cx.kernel.buffers)
  const ofProducer = loopMap(loopsOf([producer]))
  const reads = anchored(accessesOf(body), { inner, indptr }, produced)
  const own = anchored(accessesOf([producer]), { inner: ofProducer, indptr }, produced)
  const out = new Map<string, Window>()
  for (const l of ofProducer.values()) {
    if (l.reduce || l.mode.kind !== 'serial') continue
    const named = dimensionsOf(l, own)
    const values = named && valuesRead(named, reads)
    if (!values || values.length === 0) continue
    const window = windowOver(values, moving, premises)
    if (!window || isWhole(window, l)) continue
    const dimensions = new Map(
      [...named].flatMap(([b, { d, kind, offset }]) =>
        kind === 'index' ? [[b, { d, low: add(window.low, int(offset)) }] as const] : [],
      ),
    )
    out.set(l.var, { ...window, dimensions })
  }
  return out
}

/** The expression that identifies the part of a dimension that an access stays in: the index, or its segment's row. */
interface Anchor {
  readonly kind: string
  readonly expr: Expr
}

interface Anchored extends BufferAccess {
  readonly anchors: readonly Anchor[]
}

const anchored = (
  accesses: readonly BufferAccess[],
  space: Space,
  produced: ReadonlySet<string>,
): readonly Anchored[] =>
  accesses
    .filter((a) => produced.has(a.buffer))
    .map((a) => ({
      ...a,
      anchors: a.whole
        ? []
        : a.index.map((e): Anchor => {
            const segment = segmentOf(e, space)
            if (segment) return { kind: segment.buffer, expr: segment.start }
            return rowOf(e, space) ?? { kind: 'index', expr: e }
          }),
    }))

/** Returns the row in `row * width + column` if a loop runs over all columns; undefined otherwise. */
function rowOf(e: Expr, { inner }: Space): Anchor | undefined {
  const sum = linear(e)
  const [product, column, ...others] = [...sum.terms.values()].toSorted(
    (a, b) => Number(a.term.kind === 'var') - Number(b.term.kind === 'var'),
  )
  if (!product || !column || others.length > 0 || sum.constant !== 0) return undefined
  const { term } = product
  const loop = column.term.kind === 'var' ? inner.get(column.term.name) : undefined
  if (!loop || column.coefficient !== 1 || product.coefficient !== 1) return undefined
  if (term.kind !== 'binary' || term.op !== 'mul' || !sameExpr(term.b, loop.extent)) return undefined
  return { kind: `rows of ${keyOf(term.b)}`, expr: term.a }
}

interface Dimension {
  readonly d: number
  readonly kind: string
  /** The index minus the loop's variable. */
  readonly offset: number
}

/**
 * Returns, for each buffer written inside of a producer's loop, the dimension that the loop's variable indexes in all
 * accesses of the producer. Returns undefined if a buffer has no such dimension: skipped iterations would then skip
 * other elements as well.
 */
function dimensionsOf(l: For, own: readonly Anchored[]): ReadonlyMap<string, Dimension> | undefined {
  const inside = own.filter((a) => a.path.includes(l))
  const out = new Map<string, Dimension>()
  for (const { buffer, anchors, mode } of inside) {
    if (mode === 'read' || out.has(buffer)) continue
    const d = anchors.findIndex((a) => offsetFrom(l, a) !== undefined)
    const [kind, offset] = [anchors[d]?.kind, offsetFrom(l, anchors[d])]
    const isNamed = ({ anchors: of }: Anchored): boolean =>
      of[d]?.kind === kind && offsetFrom(l, of[d]) === offset
    if (kind === undefined || !own.every((a) => a.buffer !== buffer || isNamed(a))) return undefined
    out.set(buffer, { d, kind, offset: offset! })
  }
  return out.size > 0 ? out : undefined
}

/** Returns the constant by which an anchor exceeds the loop's variable; undefined if it is another expression. */
function offsetFrom(l: For, anchor: Anchor | undefined): number | undefined {
  if (!anchor || !mentions(anchor.expr, l.var)) return undefined
  const { terms, constant } = minus(linear(anchor.expr), linear(variable(l.var)))
  return terms.size === 0 ? constant : undefined
}

/** The values of the loop's variable for all reads; undefined if a read has an anchor of another kind. */
function valuesRead(
  named: ReadonlyMap<string, Dimension>,
  reads: readonly Anchored[],
): readonly Expr[] | undefined {
  const of = reads.filter((r) => r.mode === 'read' && named.has(r.buffer))
  const values = of.map((r) => {
    const { d, kind, offset } = named.get(r.buffer)!
    const anchor = r.anchors[d]
    return anchor?.kind === kind ? sub(anchor.expr, int(offset)) : undefined
  })
  return values.every((v) => v !== undefined) ? values : undefined
}

/** Returns the window: a single value if all values are equal, otherwise their interval; undefined if it is unknown. */
function windowOver(
  values: readonly Expr[],
  moving: Moving,
  premises: Premises,
): Pick<Window, 'low' | 'width'> | undefined {
  const [first] = values
  if (!moving.changes(first!) && values.every((v) => keyOf(v) === keyOf(first!)))
    return { low: first!, width: null }
  const span = spanOf(values, moving, premises)
  if (!span) return undefined
  const width = widthOf(span, premises)
  const low = sumText(span.low)
  return { low, width: width.kind === 'const' && width.value === 1 ? null : width }
}

/** Returns the expression of a sum, with its constant last. */
export const sumText = ({ terms, constant }: Linear): Expr => {
  const rest = sumExpr({ terms, constant: 0 })
  return constant < 0 && terms.size > 0 ? sub(rest, int(-constant)) : add(rest, int(constant))
}

const isWhole = ({ low, width }: Pick<Window, 'low' | 'width'>, l: For): boolean =>
  isZero(low) && width !== null && sameSum(width, l.extent)

/** Returns the producer restricted to the windows, with conditions where a window may exceed the loop. */
export function restrict(cx: Context, producer: For, at: LoopLocation, windows: Windows): Body {
  const shifted = new Map<string, Expr>()
  const loops: For[] = []
  for (const l of loopsOf([producer])) {
    const window = windows.get(l.var)
    if (!window) continue
    const { low, width } = window
    shifted.set(l.var, width ? sumText(plus(linear(low), linear(variable(l.var)))) : low)
    if (width) loops.push({ ...l, extent: width, guards: [] })
  }
  const premises = premisesAt(cx, at, loops)
  // The conditions are over the original variable, which is substituted at the end.
  const range = (l: For): readonly Expr[] => {
    const [value, extent] = [shifted.get(l.var)!, substitute(l.extent, shifted)]
    const sum = linear(value)
    const named = windows.get(l.var)!.width === null && withinExtent(cx, value, extent)
    const isBelow = named || isAtMost(sum, shift(linear(extent), -1), premises)
    const v = variable(l.var)
    return [
      ...(isAtMost(constantSum(0), sum, premises) ? [] : [ge(v, int(0))]),
      ...(isBelow ? [] : [lt(v, l.extent)]),
    ]
  }
  const go = (body: Body, reducing: boolean): Body =>
    body.flatMap((s): Body => {
      const window = s.kind === 'for' ? windows.get(s.var) : undefined
      if (s.kind !== 'for' || !window) {
        const bodies = bodiesOf(s).map((b) => go(b, reducing || (s.kind === 'for' && s.reduce)))
        return [withBodies(s, bodies)]
      }
      const inner = go(s.body, reducing)
      return window.width
        ? [windowLoop(s, window.width, range(s), inner)]
        : atValue(cx, producer, s, window.low, [...range(s), ...s.guards], inner, reducing)
    })
  return substituteStmts(go([producer], false), shifted)
}

const windowLoop = (l: For, width: Expr, range: readonly Expr[], body: Body): For =>
  stmt<For>({ ...l, extent: width, guards: [...range, ...l.guards], body })

function atValue(
  cx: Context,
  producer: For,
  l: For,
  value: Expr,
  conditions: readonly Expr[],
  inner: Body,
  reducing: boolean,
): Body {
  if (conditions.length === 0) return inner
  if (reducing)
    cx.refuse('schedule/condition-in-reduction', [producer, l], {
      message: `whether ${printExpr(value)} is in the range of ${l.name} is only known inside of a reduction`,
      hint: `reorder ${l.name} outside of the reduction loops first`,
    })
  return conditions.reduceRight<Body>((then, cond) => [when(cond, then)], inner)
}

/**
 * Returns whether the value is a loop variable with this extent, or a guard of the kernel states that the value is
 * below the extent.
 */
function withinExtent(cx: Context, value: Expr, extent: Expr): boolean {
  if (!overParams(cx, extent)) return false
  const loops = loopsOf(cx.kernel.body)
  const used = freeVars(value)
  if (value.kind === 'var') {
    const l = loops.find((x) => x.var === value.name)
    if (l && sameExpr(l.extent, extent)) return true
  }
  const key = keyOf(lt(value, extent))
  return loops.some((l) => used.has(l.var) && l.guards.some((g) => keyOf(g) === key))
}
