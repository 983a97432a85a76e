/** Values of entries: as columns, ordered by magnitude, and stored at their positions. */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import { ENTRY, type Frame } from '../../../../columns/column-engine.ts'
import type { Coroutine } from '../../../../columns/coroutines.ts'
import type { GroupQuery, Scope, SortKey, StoredValues } from '../../../../columns/engine-operands.ts'
import {
  add,
  binary,
  call,
  cast,
  constant,
  div,
  type Expr,
  int,
  load,
  lt,
  mod,
  select,
  sub,
  variable,
} from '../../../../ir/expressions/expr.ts'
import { keysOf } from '../../../columns/sort-permutations.ts'
import type { Queue } from '../queue/command-queue.ts'
import { orderBy } from '../sorting/lexicographic-order.ts'
import {
  atomic,
  type Column,
  get,
  natural,
  next,
  read,
  store,
  update,
  write,
  zero,
} from './kernel-builder.ts'
import { ranks, runNumbers } from './level-scans.ts'
import { compute, numbers, termsOf } from './map-reduce.ts'

type F = Frame<Column>

const BITS = '@bits'
const ENTRIES = '@entries'

/**
 * Values for queries if coordinates may be equal: each entry has the sum over its equals, in the widest type of the
 * device. The original values if all coordinates are distinct.
 */
export function* sumsOfEqual(
  q: Queue,
  frame: F,
  values: Column,
  dims: Scope<Column>['dims'],
): Coroutine<{ readonly sums: Column; readonly distinct: boolean }> {
  yield* orderBy(
    q,
    frame,
    dims.map((d) => ({ expr: variable(d.name), extent: d.extent })),
  )
  const { n } = frame
  const total = q.cells()
  const groups = runNumbers(
    q,
    frame,
    'groups',
    { keys: dims.map((d) => variable(d.name)), cut: null },
    0,
    total,
  )
  const [count = 0] = yield* numbers(q, total)
  if (count === n) {
    q.release(groups)
    return { sums: values, distinct: true }
  }
  const wide = q.device.storage === 'words' ? 'f32' : 'f64'
  const groupSums = q.column(count, wide, 'sums')
  q.clear(groupSums)
  const sums = q.column(values.length, wide, 'sums')
  const { entry } = frame
  const columns = { x_groups: natural(groups), ...(entry ? { x_entry: natural(entry) } : {}) }
  const sourceIndex = (e: Expr): Expr => (entry ? get('x_entry', e) : e)
  q.launch({
    key: `sums of equal ${entry !== null}`,
    threads: n,
    columns: { ...columns, x_values: read(values), x_found: update(groupSums) },
    body: (e) => [
      atomic(
        '+',
        'x_found',
        get('x_groups', e),
        cast(load('x_values', [sourceIndex(e)], values.dtype), wide),
      ),
    ],
  })
  q.launch({
    key: `sums to entries ${entry !== null}`,
    threads: n,
    columns: { ...columns, x_found: read(groupSums), x_sums: write(sums) },
    body: (e) => [store('x_sums', sourceIndex(e), load('x_found', [get('x_groups', e)], wide))],
  })
  q.release(groups, groupSums)
  return { sums, distinct: false }
}

export function takeValues(q: Queue, frame: F, name: string, values: Column): void {
  const { entry } = frame
  const out = gatherSource(q, values, entry, frame.n, name)
  frame.set(name, out)
}

function gatherSource(q: Queue, values: Column, entry: Column | null, n: number, label: string): Column {
  const out = q.column(n, values.dtype, label)
  q.launch({
    key: `value ${entry ? 'entry' : ''}`,
    threads: n,
    columns: { x_values: read(values), ...(entry ? { x_entry: natural(entry) } : {}), x_out: write(out) },
    body: (e) => [store('x_out', e, load('x_values', [entry ? get('x_entry', e) : e], values.dtype))],
  })
  return out
}

/** Ranks by decreasing magnitude: the bit patterns of positive floats are ordered like their values. */
export function* rankByMagnitude(
  q: Queue,
  frame: F,
  { name, by }: GroupQuery,
  scope: Scope<Column>,
): Coroutine<void> {
  const values = scope.values && widenForOrder(q, scope.values)
  const keys = yield* keysOf(frame, by)
  const valueKeys: SortKey[] = []
  if (values) {
    const magnitude = magnitudeKeys(frame, values)
    magnitude.forEach((e, k) => {
      compute(q, frame, `@magnitude ${k}`, e)
      valueKeys.push({ expr: variable(`@magnitude ${k}`), extent: k === 2 ? 2 : 2 ** 31 })
    })
  }
  const dims = scope.dims.map((d) => ({ expr: variable(d.name), extent: d.extent }))
  yield* orderBy(q, frame, [...keys, ...valueKeys, ...dims])
  for (const k of valueKeys.keys()) frame.drop(`@magnitude ${k}`)
  for (const t of [BITS, ENTRIES]) frame.tables.delete(t)
  if (values !== scope.values) q.release(values)
  frame.sortedBy = frame.sortedBy.slice(0, keys.length)
  // Equal coordinates have equal values and share a rank.
  ranks(q, frame, name, { keys: [...by, ...dims.map((d) => d.expr)], cut: null }, by.length)
}

const LARGEST_INT = 2 ** 31 - 1
const SMALLEST_INT = -(2 ** 31)

/** Keys that ascend as magnitudes descend, from the values' bits read as i32 words. */
function magnitudeKeys(frame: F, values: Column): Expr[] {
  const { dtype } = values
  frame.tables.set(BITS, { ...values, dtype: 'i32' })
  frame.signed.add(BITS)
  if (frame.entry) frame.tables.set(ENTRIES, frame.entry)
  const index = frame.entry ? load(ENTRIES, [variable(ENTRY)]) : variable(ENTRY)
  const word = (k: Expr): Expr => load(BITS, [k])
  /** A key that ascends as the magnitude descends; the sign bit is ignored. */
  const descendingKey = (w: Expr): Expr =>
    sub(int(LARGEST_INT), select(lt(w, int(0)), sub(w, int(SMALLEST_INT)), w))
  if (dtype === 'f32') return [descendingKey(word(index))]
  if (dtype === 'i32') {
    const w = word(index)
    return [sub(int(LARGEST_INT), select(lt(w, int(0)), sub(int(0), binary('max', w, int(-LARGEST_INT))), w))]
  }
  invariant(dtype === 'f64', `${dtype} was not made wider`)
  const low = word(add(index, index))
  const half = div(low, int(2))
  const unsigned = select(lt(half, int(0)), call('bit_xor', [half, int(SMALLEST_INT)]), half)
  return [
    descendingKey(word(next(add(index, index)))),
    sub(int(LARGEST_INT), unsigned),
    sub(int(1), mod(low, int(2))),
  ]
}

/** The values in a type whose words `magnitudeKeys` can order; narrower types are widened to f32. */
function widenForOrder(q: Queue, values: Column): Column {
  const { dtype, length } = values
  if (dtype === 'f32' || dtype === 'i32' || dtype === 'f64') return values
  const wide = dtype === 'u32' && q.device.storage !== 'words' ? 'f64' : 'f32'
  const out = q.column(length, wide, 'values')
  q.launch({
    key: 'wider',
    threads: length,
    columns: { x_from: read(values), x_to: write(out) },
    body: (e) => [store('x_to', e, cast(load('x_from', [e], dtype), wide))],
  })
  return out
}

/** Scatters values to the entries' positions and the fill value elsewhere; values at one position are added. */
export function storeValues(
  q: Queue,
  frame: F,
  position: Expr,
  size: number,
  source: StoredValues<Column>,
): Column {
  const { stored: values, dtype, fill, distinct } = source
  const out = q.column(size, dtype, 'values')
  const t = termsOf(q, frame, [position])
  const entry = frame.entry
  const inputs = {
    ...t.columns,
    ...(values ? { x_values: read(values) } : {}),
    ...(values && entry ? { x_entry: natural(entry) } : {}),
  }
  const value = (e: Expr): Expr =>
    values
      ? load('x_values', [entry ? get('x_entry', e) : e], dtype)
      : cast(constant(1, dtype === 'bool' ? 'i32' : dtype), dtype)
  if (Object.is(fill, 0)) q.clear(out)
  else
    q.launch({
      key: `fill ${fill}`,
      threads: size,
      columns: { x_to: write(out) },
      body: (e) => [store('x_to', e, cast(constant(fill, dtype === 'bool' ? 'i32' : dtype), dtype))],
    })
  const assign = distinct || dtype === 'bool'
  const scatterLaunch = (
    key: string,
    access: typeof write,
    body: (to: Expr, e: Expr) => ReturnType<typeof store>,
  ): void =>
    q.launch({
      ...t,
      key: `${key} ${values ? 'values' : 'ones'} ${entry ? 'entry' : ''} ${t.key}`,
      threads: frame.n,
      columns: { ...inputs, x_to: access(out) },
      body: (e) => [body(t.at(e)[0]!, e)],
    })
  if (assign) scatterLaunch('scatter', write, (to, e) => store('x_to', to, value(e)))
  else {
    if (!Object.is(fill, 0)) scatterLaunch('start sums', write, (to) => store('x_to', to, zero(dtype)))
    scatterLaunch('sum', update, (to, e) => atomic('+', 'x_to', to, value(e)))
  }
  return out
}
