/** Bounds of expressions over a frame, from its columns, sizes and tables (given lists ascend); sort keys within them. */
import { HIGHEST, type Interval, interval, type NamedRange } from '../../analysis/integers/interval.ts'
import { boundsOf, overflowIn, type ReadRange } from '../../analysis/integers/ranges.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { OpenSortKey, SortKey } from '../../columns/engine-operands.ts'
import { add, call, type Expr, int, lt, select } from '../../ir/expressions/expr.ts'

type RangeSource = Pick<Frame<Column>, 'range' | 'lists' | 'tables' | 'fills' | 'rangeChecked'>

/** Bounds of an expression, if known. `rangeOfName`: bounds of columns and sizes, by default the frame's. */
export const boundsIn = (
  frame: RangeSource,
  e: Expr,
  rangeOfName: NamedRange = (name) => frame.range(name),
): Interval | undefined => boundsOf(e, rangeOfName, readBounds(frame))

/** The first subexpression that may exceed 32 bits; `rangeOfName` as in `boundsIn`. */
export const overflowOf = (
  frame: RangeSource,
  e: Expr,
  rangeOfName: NamedRange = (name) => frame.range(name),
): ReturnType<typeof overflowIn> =>
  overflowIn(e, rangeOfName, readBounds(frame), (x) => frame.rangeChecked.has(x))

/** Rejects an expression that overflows. @throws SptError `format/map-overflow` */
export const rejectOverflow = (overflow: NonNullable<ReturnType<typeof overflowOf>>, text: string): never =>
  failWith('format/map-overflow', `${text} reaches ${overflow.hi > HIGHEST ? overflow.hi : overflow.lo}`, {
    ...(overflow.expr.span && { span: overflow.expr.span }),
    expected: 'intermediate results that fit into 32 bits, as in kernels',
    hint: 'divide before multiplying, or map to more axes',
  })

const readBounds =
  (frame: Omit<RangeSource, 'range' | 'rangeChecked'>): ReadRange =>
  (e, operands) => {
    if (e.kind !== 'load' && e.kind !== 'search') return undefined
    const list = frame.lists.get(e.buffer)?.values
    if (!list) return tableBounds(frame, e.buffer, operands[0]!)
    if (e.kind === 'load') return mapMonotone(operands[0]!, (at) => list[clampIndex(at, list)]!)
    const [start, end, value] = operands as [Interval, Interval, Interval]
    const coversList = e.kind === 'search' && value.known && start.hi === 0 && end.lo === list.length
    return coversList ? mapMonotone(value, (x) => countBelow(list, x, e.method === 'lower')) : undefined
  }

/** Bounds of a table: orders and lists hold coordinates less than their fill value, which also pads them. */
function tableBounds(
  { tables, fills }: Omit<RangeSource, 'range' | 'rangeChecked'>,
  name: string,
  at: Interval,
): Interval | undefined {
  const [table, fill] = [tables.get(name), fills.get(name)]
  if (!table || fill === undefined) return undefined
  const isInRange = table.length === fill && at.known && at.lo >= 0 && at.hi < fill
  return interval(0, Math.max(0, isInRange ? fill - 1 : fill))
}

const mapMonotone = ({ lo, hi, knownLo, knownHi }: Interval, f: (x: number) => number): Interval =>
  interval(f(lo), f(hi), knownLo, knownHi)

const clampIndex = (at: number, { length }: Int32Array): number => Math.min(Math.max(at, 0), length - 1)

/** The number of elements of an ascending list that are less than a value (`strictly`), or at most it. */
function countBelow(list: Int32Array, x: number, strictly: boolean): number {
  let [lo, hi] = [0, list.length]
  while (lo < hi) {
    const middle = (lo + hi) >> 1
    if (strictly ? list[middle]! < x : list[middle]! <= x) lo = middle + 1
    else hi = middle
  }
  return lo
}

// Sort keys from expressions, with their ranges.

/** Expressions as non-negative keys, one or two for each; unknown ranges are measured. */
export const keysOf = <C extends Column>(frame: Frame<C>, exprs: readonly Expr[]): Coroutine<SortKey[]> =>
  measureKeys(
    frame,
    exprs.map((expr) => ({ expr })),
  )

export function* measureKeys<C extends Column>(
  frame: Frame<C>,
  partialKeys: readonly OpenSortKey[],
): Coroutine<SortKey[]> {
  const keys: SortKey[] = []
  for (const [k, { expr, extent }] of partialKeys.entries()) {
    if (extent !== undefined) {
      keys.push({ expr, extent })
      continue
    }
    const bounds = boundsIn(frame, expr)
    const [lo, hi] = bounds?.fits ? [bounds.lo, bounds.hi] : yield* frame.engine.bounds(frame, expr)
    if (lo >= 0) keys.push({ expr, extent: hi + 1 })
    // If the range exceeds 31 bits: one key for the sign, and one for the other 31 bits.
    else if (Math.max(0, hi) - lo >= HIGHEST)
      keys.push(
        { expr: select(lt(expr, int(0)), int(0), int(1)), extent: 2 },
        { expr: call('bit_and', [expr, int(HIGHEST)]), extent: HIGHEST + 1 },
      )
    else keys.push({ expr: add(expr, frame.bindSize(-lo, `@least ${k}`)), extent: hi - lo + 1 })
  }
  return keys
}
