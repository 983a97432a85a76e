/**
 * Bounds checks of table reads in expressions of formats: ranks of sorts by coordinate, and boundaries of
 * lists given with the data. One rule applies to maps, inverses, conditions, keys and queries on every
 * engine: a read out of range is rejected, unless bounds prove that there is none. Results must also fit 32
 * bits by measured bounds, because devices compute in 32 bits.
 */
import { HIGHEST, type Interval, LOWEST, type NamedRange } from '../../analysis/integers/interval.ts'
import { failWith, type Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import { type Column, ENTRY, type Frame } from '../../columns/column-engine.ts'
import { all, binary, type Expr, ge, int, load, lt, select, variable } from '../../ir/expressions/expr.ts'
import { freeVars, rewriteExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import { segmentsOf } from '../../ir/formats/format-tables.ts'
import { operandsOf, type Query, sourceOf } from '../../ir/formats/queries.ts'
import { printWithQueries } from '../../ir/print/print-expr.ts'
import { pointOf } from '../storage.ts'
import { boundsIn, overflowOf, rejectOverflow } from './expression-bounds.ts'

interface ReadError {
  readonly message: string
  readonly span?: Span
  readonly expected: string
  readonly hint: string
}

export interface UncheckedRead {
  readonly at: Expr
  readonly isOutside: Expr
  readonly describe: (found: number) => ReadError
}

export interface EntryLabel {
  readonly names: readonly string[]
  readonly exprs: readonly Expr[]
}

export const labelByDims = (dims: readonly { readonly name: string }[]): EntryLabel => ({
  names: dims.map((d) => d.name),
  exprs: dims.map((d) => variable(d.name)),
})

/** For expressions over axes: the axes' extents, and the translation into the frame. */
export interface AxisContext {
  readonly extents: ReadonlyMap<string, number>
  readonly inFrame: (e: Expr) => Expr
  /** Conditions that hold for entries that are not padding. */
  readonly elementConditions?: readonly Expr[]
}

/** The list reads that may be out of range; nested reads come first. */
export function uncheckedReads<C extends Column>(
  frame: Frame<C>,
  exprs: readonly Expr[],
  axes?: AxisContext,
): UncheckedRead[] {
  const out: UncheckedRead[] = []
  const seen = new Set<Expr>()
  if (frame.lists.size === 0) return out
  const inFrame = axes?.inFrame ?? ((e: Expr) => replaceOutOfRange(frame, e))
  const range = rangeIn(frame, axes)
  const visit = (x: Expr): undefined => {
    const list = x.kind === 'load' ? frame.lists.get(x.buffer) : undefined
    if (x.kind !== 'load' || !list || seen.has(x)) return
    seen.add(x)
    const index = x.index[0]!
    const { name, values } = list
    const { length } = values
    if (isWithin(boundsIn(frame, index, range), length)) return
    out.push(
      makeUncheckedRead(frame, inFrame(index), length, (found) => ({
        message: `position ${found} of the list ${name} is read`,
        ...(x.span && { span: x.span }),
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
  <C extends Column>(frame: Frame<C>, axes?: AxisContext): NamedRange =>
  (name) => {
    const extent = axes?.extents.get(name)
    return extent === undefined ? frame.range(name) : [0, Math.max(0, extent - 1)]
  }

function uncheckedSortReads<C extends Column>(frame: Frame<C>, q: Query, length: number): UncheckedRead[] {
  return operandsOf(q).flatMap((operand) =>
    isWithin(boundsIn(frame, operand), length)
      ? []
      : makeUncheckedRead(frame, replaceOutOfRange(frame, operand), length, (found) => ({
          message: `the sort has no coordinate ${found}`,
          ...(q.span && { span: q.span }),
          expected: `a coordinate from 0 to ${length - 1}`,
          hint: `index ${sourceOf(q, 'sort')}[…] with coordinates of the sorted dimension`,
        })),
  )
}

const isWithin = (bounds: Interval | undefined, length: number): boolean =>
  bounds !== undefined && bounds.lo >= 0 && bounds.hi < length

function makeUncheckedRead<C extends Column>(
  frame: Frame<C>,
  at: Expr,
  length: number,
  describe: UncheckedRead['describe'],
): UncheckedRead {
  return { at, isOutside: isOutOfRange(frame, at, length), describe }
}

const isOutOfRange = <C extends Column>(frame: Frame<C>, at: Expr, length: number): Expr =>
  binary('or', lt(at, int(0)), ge(at, frame.bindSize(length, `@length ${length}`)))

/** Replaces out-of-range list reads by 0: outer indices are evaluated before inner reads are known to be in range. */
const replaceOutOfRange = <C extends Column>(frame: Frame<C>, e: Expr): Expr =>
  rewriteExpr(e, (x) => {
    const list = x.kind === 'load' ? frame.lists.get(x.buffer) : undefined
    return x.kind === 'load' && list
      ? select(isOutOfRange(frame, x.index[0]!, list.values.length), int(0), x)
      : undefined
  })

/** Checks the reads, for entries that satisfy the `conditions`. @throws SptError `format/map-range` */
export function* checkReads<C extends Column>(
  frame: Frame<C>,
  reads: readonly UncheckedRead[],
  label: EntryLabel,
  conditions: readonly Expr[] = [],
): Coroutine<void> {
  if (frame.n === 0 || reads.length === 0) return
  const violations = yield* frame.engine.findFirst(
    frame,
    reads.map((r) => all([...conditions, r.isOutside])),
  )
  const k = violations.findIndex((entry) => entry >= 0)
  if (k >= 0) yield* rejectRead(frame, reads[k]!, label, violations[k]!)
}

/** Reports a read out of range. @throws SptError `format/map-range` */
export function* rejectRead<C extends Column>(
  frame: Frame<C>,
  { at, describe }: UncheckedRead,
  { names, exprs }: EntryLabel,
  entry: number,
): Coroutine<never> {
  const values = yield* frame.engine.valuesAt(frame, [...exprs, at], entry)
  const { message, ...more } = describe(values.at(-1)!)
  return failWith('format/map-range', `at ${pointOf(names, values.slice(0, -1))} ${message}`, more)
}

/**
 * Checks expressions before they are evaluated for all entries: reads are in range, and results fit 32 bits.
 * `queries`: those to which the expressions refer. Operands of a sort are checked at the query
 * (`sortOperand`). @throws SptError `format/map-range`, `format/map-overflow`
 */
export function* checkExpressions<C extends Column>(
  frame: Frame<C>,
  exprs: readonly Expr[],
  dims: readonly { readonly name: string }[],
  queries: readonly Query[],
  sortOperand?: { readonly of: Query; readonly count: number } | undefined,
): Coroutine<void> {
  if (frame.n === 0) return
  const reads = [
    ...uncheckedReads(frame, exprs),
    ...(sortOperand ? uncheckedSortReads(frame, sortOperand.of, sortOperand.count) : []),
  ]
  yield* checkReads(frame, reads, labelByDims(dims))
  for (const e of exprs) yield* checkWords(frame, e, queries)
}

/** The same check for inverse maps, over axes. @throws SptError `format/map-overflow` */
export function* checkInverseWords<C extends Column>(
  frame: Frame<C>,
  exprs: readonly Expr[],
  axes: AxisContext,
): Coroutine<void> {
  if (frame.n > 0) for (const e of exprs) yield* checkWords(frame, e, [], axes)
}

function* checkWords<C extends Column>(
  frame: Frame<C>,
  e: Expr,
  queries: readonly Query[],
  axes?: AxisContext,
): Coroutine<void> {
  const measuredRanges = new Map<string, readonly [number, number]>()
  const range = rangeIn(frame, axes)
  const findOverflow = () => overflowOf(frame, e, (name) => measuredRanges.get(name) ?? range(name))
  if (!findOverflow()) return
  const isElement = all(axes?.elementConditions ?? [])
  const unconditional = (axes?.elementConditions ?? []).length === 0
  if (!unconditional && (yield* frame.engine.findFirst(frame, [isElement]))[0]! < 0) return
  // Measured ranges are often far smaller than the possible ones.
  for (const name of freeVars(e)) {
    const possible = range(name)
    const isAxis = axes?.extents.has(name) ?? false
    if (name === ENTRY || !possible || !(isAxis || frame.column(name))) continue
    if (isAxis) {
      const translated = axes!.inFrame(variable(name))
      measuredRanges.set(
        name,
        yield* measureBounds(
          frame,
          unconditional ? translated : select(isElement, translated, int(0)),
          possible,
        ),
      )
    } else yield* measure(frame, name)
  }
  const remaining = findOverflow()
  if (remaining) rejectOverflow(remaining, textOf(remaining.expr, frame, queries))
}

export function* measure<C extends Column>(frame: Frame<C>, name: string): Coroutine<void> {
  frame.bounds.set(name, yield* measureBounds(frame, variable(name), frame.range(name)))
}

function* measureBounds<C extends Column>(
  frame: Frame<C>,
  e: Expr,
  possible: readonly [number, number] = [LOWEST, HIGHEST],
): Coroutine<readonly [number, number]> {
  const [lo, hi] = yield* frame.engine.bounds(frame, e)
  return [Math.max(lo, possible[0]), Math.min(hi, possible[1])]
}

/** The expression in the format's syntax, with the names of the data. */
function textOf(e: Expr, { lists }: Pick<Frame<Column>, 'lists'>, queries: readonly Query[]): string {
  const sizes = [...lists.values()].map(
    ({ name }) => [segmentsOf(name), variable(`segments(${name})`)] as const,
  )
  const renamed = rewriteExpr(e, (x) => {
    const list = x.kind === 'load' ? lists.get(x.buffer) : undefined
    return x.kind === 'load' && list ? load(list.name, x.index, x.dtype) : undefined
  })
  return printWithQueries(substitute(renamed, new Map(sizes)), queries)
}
