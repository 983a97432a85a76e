/**
 * Bounds checks of table reads in expressions of formats: places of sorts by coordinate, boundaries of lists given with
 * the data. One rule for maps, inverses, conditions, keys and queries on every engine: a read out of range is rejected,
 * unless bounds prove that there is none. Results must also fit 32 bits, as devices compute them, judged by measured
 * bounds.
 */
import { HIGHEST, type Interval, LOWEST, type NamedRange } from '../analysis/integers/interval.ts'
import { fail, type Span } from '../ast/diagnostic.ts'
import { all, binary, type Expr, ge, int, load, lt, select, variable } from '../ir/expr.ts'
import { freeVars, rewriteExpr, substitute } from '../ir/expr-tree.ts'
import { segmentsOf } from '../ir/format-tables.ts'
import { textOfAsked } from '../ir/print-queries.ts'
import { operandsOf, type Query, sourceOf } from '../ir/queries.ts'
import { type Column, ENTRY, type Frame } from './column-engine.ts'
import { pointOf } from './coordinate-text.ts'
import type { Coroutine } from './coroutines.ts'
import { boundsIn, overflowOf, refuseOverflow } from './expression-bounds.ts'

interface Complaint {
  readonly message: string
  readonly span?: Span
  readonly expected: string
  readonly hint: string
}

/** A read that may be out of range. */
export interface UnsureRead {
  /** The index, over the names of a frame. */
  readonly at: Expr
  readonly outside: Expr
  readonly refusal: (found: number) => Complaint
}

/** Names and values that identify an entry in messages. */
export interface Named {
  readonly names: readonly string[]
  readonly exprs: readonly Expr[]
}

export const namedBy = (dims: readonly { readonly name: string }[]): Named => ({
  names: dims.map((d) => d.name),
  exprs: dims.map((d) => variable(d.name)),
})

/** For expressions over axes: the axes' extents, and the translation into the frame. */
export interface OverAxes {
  readonly extents: ReadonlyMap<string, number>
  readonly inFrame: (e: Expr) => Expr
  /** Conditions that hold for entries that are not padding. */
  readonly held?: readonly Expr[]
}

/** The list reads that may be out of range; nested ones first. */
export function unsureReads<C extends Column>(
  frame: Frame<C>,
  exprs: readonly Expr[],
  axes?: OverAxes,
): UnsureRead[] {
  const out: UnsureRead[] = []
  const seen = new Set<Expr>()
  if (frame.lists.size === 0) return out
  const inFrame = axes?.inFrame ?? ((e: Expr) => inside(frame, e))
  const range = rangeIn(frame, axes)
  const visit = (x: Expr): undefined => {
    const list = x.kind === 'load' ? frame.lists.get(x.buffer) : undefined
    if (x.kind !== 'load' || !list || seen.has(x)) return
    seen.add(x)
    const at = x.index[0]!
    const { name, values } = list
    const { length } = values
    if (isWithin(boundsIn(frame, at, range), length)) return
    out.push(
      unsure(frame, inFrame(at), length, (found) => ({
        message: `position ${found} of the list ${name} is read`,
        ...(x.span ? { span: x.span } : {}),
        expected: `a position from 0 to ${length - 1}: ${name} has ${length} ${length === 1 ? 'boundary' : 'boundaries'}`,
        hint: 'read positions that the list has (find(list, i), find(list, i) + 1), or keep others within it: min(max(k, 0), segments(list))',
      })),
    )
    return
  }
  for (const e of exprs) rewriteExpr(e, visit)
  return out
}

const rangeIn =
  <C extends Column>(frame: Frame<C>, axes?: OverAxes): NamedRange =>
  (name) => {
    const extent = axes?.extents.get(name)
    return extent === undefined ? frame.range(name) : [0, Math.max(0, extent - 1)]
  }

/** As `unsureReads`, for a query of places in a sort. */
function unsurePlaces<C extends Column>(frame: Frame<C>, q: Query, length: number): UnsureRead[] {
  return operandsOf(q).flatMap((at) =>
    isWithin(boundsIn(frame, at), length)
      ? []
      : unsure(frame, inside(frame, at), length, (found) => ({
          message: `the sort has no coordinate ${found}`,
          ...(q.span ? { span: q.span } : {}),
          expected: `a coordinate from 0 to ${length - 1}`,
          hint: `index ${sourceOf(q, 'sort')}[…] with coordinates of the sorted dimension`,
        })),
  )
}

const isWithin = (known: Interval | undefined, length: number): boolean =>
  known !== undefined && known.lo >= 0 && known.hi < length

function unsure<C extends Column>(
  frame: Frame<C>,
  at: Expr,
  length: number,
  refusal: UnsureRead['refusal'],
): UnsureRead {
  return { at, outside: outsideOf(frame, at, length), refusal }
}

const outsideOf = <C extends Column>(frame: Frame<C>, at: Expr, length: number): Expr =>
  binary('or', lt(at, int(0)), ge(at, frame.sized(length, `@length ${length}`)))

/** Replaces out-of-range list reads by 0: outer indices are evaluated before inner reads are known to be in range. */
const inside = <C extends Column>(frame: Frame<C>, e: Expr): Expr =>
  rewriteExpr(e, (x) => {
    const list = x.kind === 'load' ? frame.lists.get(x.buffer) : undefined
    return x.kind === 'load' && list
      ? select(outsideOf(frame, x.index[0]!, list.values.length), int(0), x)
      : undefined
  })

/** Checks the reads; `only`: for entries that satisfy these conditions. @throws SptError `format/map-range` */
export function* checkReads<C extends Column>(
  frame: Frame<C>,
  reads: readonly UnsureRead[],
  named: Named,
  only: readonly Expr[] = [],
): Coroutine<void> {
  if (frame.n === 0 || reads.length === 0) return
  const found = yield* frame.engine.first(
    frame,
    reads.map((r) => all([...only, r.outside])),
  )
  const k = found.findIndex((entry) => entry >= 0)
  if (k >= 0) yield* refuseRead(frame, reads[k]!, named, found[k]!)
}

/** Reports a read out of range. @throws SptError `format/map-range` */
export function* refuseRead<C extends Column>(
  frame: Frame<C>,
  { at, refusal }: UnsureRead,
  { names, exprs }: Named,
  entry: number,
): Coroutine<never> {
  const values = yield* frame.engine.valuesAt(frame, [...exprs, at], entry)
  const { message, ...more } = refusal(values.at(-1)!)
  return fail({
    code: 'format/map-range',
    message: `at ${pointOf(names, values.slice(0, -1))} ${message}`,
    ...more,
  })
}

/**
 * Checks expressions before they are evaluated for all entries: reads are in range, and results fit 32 bits. `queries`:
 * those that they mention. Places in sorts are checked at the query. @throws SptError `format/map-range`,
 * `format/map-overflow`
 */
export function* checkAsked<C extends Column>(
  frame: Frame<C>,
  exprs: readonly Expr[],
  dims: readonly { readonly name: string }[],
  queries: readonly Query[],
  places?: { readonly of: Query; readonly count: number } | undefined,
): Coroutine<void> {
  if (frame.n === 0) return
  const reads = [
    ...unsureReads(frame, exprs),
    ...(places ? unsurePlaces(frame, places.of, places.count) : []),
  ]
  yield* checkReads(frame, reads, namedBy(dims))
  for (const e of exprs) yield* checkWords(frame, e, queries)
}

/** The same check for inverse maps, over axes. @throws SptError `format/map-overflow` */
export function* checkInverseWords<C extends Column>(
  frame: Frame<C>,
  exprs: readonly Expr[],
  axes: OverAxes,
): Coroutine<void> {
  if (frame.n > 0) for (const e of exprs) yield* checkWords(frame, e, [], axes)
}

function* checkWords<C extends Column>(
  frame: Frame<C>,
  e: Expr,
  queries: readonly Query[],
  axes?: OverAxes,
): Coroutine<void> {
  const known = new Map<string, readonly [number, number]>()
  const range = rangeIn(frame, axes)
  const over = () => overflowOf(frame, e, (name) => known.get(name) ?? range(name))
  if (!over()) return
  const held = all(axes?.held ?? [])
  const isAll = (axes?.held ?? []).length === 0
  if (!isAll && (yield* frame.engine.first(frame, [held]))[0]! < 0) return
  // Measured ranges are often far smaller than the possible ones.
  for (const name of freeVars(e)) {
    const most = range(name)
    const isAxis = axes?.extents.has(name) ?? false
    if (name === ENTRY || !most || !(isAxis || frame.column(name))) continue
    if (isAxis) {
      const at = axes!.inFrame(variable(name))
      known.set(name, yield* measured(frame, isAll ? at : select(held, at, int(0)), most))
    } else yield* measure(frame, name)
  }
  const still = over()
  if (still) refuseOverflow(still, textOf(still.expr, frame, queries))
}

/** Measures the range of a column and records it in the frame. */
export function* measure<C extends Column>(frame: Frame<C>, name: string): Coroutine<void> {
  frame.bounds.set(name, yield* measured(frame, variable(name), frame.range(name)))
}

function* measured<C extends Column>(
  frame: Frame<C>,
  e: Expr,
  most: readonly [number, number] = [LOWEST, HIGHEST],
): Coroutine<readonly [number, number]> {
  const [lo, hi] = yield* frame.engine.bounds(frame, e)
  return [Math.max(lo, most[0]), Math.min(hi, most[1])]
}

/** The expression in the format's syntax, with the names of the data. */
function textOf(e: Expr, { lists }: Pick<Frame<Column>, 'lists'>, queries: readonly Query[]): string {
  const sizes = [...lists.values()].map(
    ({ name }) => [segmentsOf(name), variable(`segments(${name})`)] as const,
  )
  const ofData = rewriteExpr(e, (x) => {
    const list = x.kind === 'load' ? lists.get(x.buffer) : undefined
    return x.kind === 'load' && list ? load(list.name, x.index, x.dtype) : undefined
  })
  return textOfAsked(substitute(ofData, new Map(sizes)), queries)
}
