/** Values of entries: as columns, ordered by magnitude, and stored at their positions. */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import { ENTRY } from '../../../../columns/column-engine.ts'
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
import { type DeviceEngine, type F, type Queue, queueIn } from '../queue/command-queue.ts'
import { orderBy } from '../sorting/lexicographic-order.ts'
import type { Column, LaunchSpec } from './kernel-builder.ts'
import { atomic, get, natural, next, read, store, update, write, zero } from './kernel-builder.ts'
import { runNumbers } from './level-scans.ts'
import { compute, launchOver, numbers } from './map-reduce.ts'

const BITS = '@bits'
const ENTRIES = '@entries'

/** The index of an entry in the source (`entry[e]`, or e), with its column and its part of the kernel's key. */
const sourceIndex = (entry: Column | null) => ({
  at: (e: Expr): Expr => (entry ? get('x_entry', e) : e),
  columns: (entry ? { x_entry: natural(entry) } : {}) as LaunchSpec['columns'],
  key: entry ? 'entry' : '',
})

/** `to[offset + e] = from[entry[e]]`. */
export function append(
  q: Queue,
  from: Column,
  entry: Column | null,
  to: Column,
  offset: number,
  n: number,
): void {
  const source = sourceIndex(entry)
  q.launch({
    key: `append ${source.key}`,
    threads: n,
    columns: { x_from: read(from), ...source.columns, x_to: update(to) },
    sizes: { x_at: offset },
    body: (e) => [store('x_to', add(e, variable('x_at')), load('x_from', [source.at(e)], from.dtype))],
  })
}

export const takeValues: DeviceEngine['takeValues'] = (frame, name, values) => {
  const q = queueIn(frame)
  const out = q.column(frame.n, values.dtype, name)
  append(q, values, frame.entry, out, 0, frame.n)
  frame.set(name, out)
}

/** Sums are in the widest type of the device; the original values if all coordinates are distinct. */
export const sumsOfEqual: DeviceEngine['sumsOfEqual'] = function* (frame, values, _dtype, dims, distinct) {
  if (distinct) return { sums: values, distinct }
  const q = queueIn(frame)
  const keys = dims.map((d) => ({ expr: variable(d.name), extent: d.extent }))
  yield* orderBy(frame, keys)
  const { n } = frame
  const total = q.cells()
  const groups = runNumbers(frame, 'groups', { keys: keys.map((k) => k.expr), cut: null }, 0, total)
  const [count = 0] = yield* numbers(q, total)
  if (count === n) {
    q.release(groups)
    return { sums: values, distinct: true }
  }
  const wide = q.device.storage === 'words' ? 'f32' : 'f64'
  const groupSums = q.column(count, wide, 'sums')
  q.clear(groupSums)
  const sums = q.column(values.length, wide, 'sums')
  const source = sourceIndex(frame.entry)
  const columns = { x_groups: natural(groups), ...source.columns }
  const value = (e: Expr): Expr => cast(load('x_values', [source.at(e)], values.dtype), wide)
  q.launch({
    key: `sums of equal ${source.key}`,
    threads: n,
    columns: { ...columns, x_values: read(values), x_found: update(groupSums) },
    body: (e) => [atomic('+', 'x_found', get('x_groups', e), value(e))],
  })
  q.launch({
    key: `sums to entries ${source.key}`,
    threads: n,
    columns: { ...columns, x_found: read(groupSums), x_sums: write(sums) },
    body: (e) => [store('x_sums', source.at(e), load('x_found', [get('x_groups', e)], wide))],
  })
  q.release(groups, groupSums)
  return { sums, distinct: false }
}

/** The bit patterns of positive floats are ordered like their values. */
export const magnitudes: DeviceEngine['magnitudes'] = (frame, stored) => {
  const q = queueIn(frame)
  const values = widenForOrder(q, stored)
  const keys = magnitudeKeys(frame, values)
  for (const [k, e] of keys.entries()) compute(frame, `@magnitude ${k}`, e)
  for (const t of [BITS, ENTRIES]) frame.tables.delete(t)
  if (values !== stored) q.release(values)
  return keys.length
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

export const storeValues: DeviceEngine['storeValues'] = (frame, position, size, source) => {
  const q = queueIn(frame)
  const { stored, dtype, fill, distinct } = source
  const out = q.column(size, dtype, 'values')
  const entry = sourceIndex(stored && frame.entry)
  const number = (x: number): Expr => cast(constant(x, dtype === 'bool' ? 'i32' : dtype), dtype)
  const value = (e: Expr): Expr => (stored ? load('x_values', [entry.at(e)], dtype) : number(1))
  if (Object.is(fill, 0)) q.clear(out)
  else
    q.launch({
      key: `fill ${fill}`,
      threads: size,
      columns: { x_to: write(out) },
      body: (e) => [store('x_to', e, number(fill))],
    })
  const scatterValues = (
    key: string,
    access: typeof write,
    set: (to: Expr, e: Expr) => ReturnType<typeof store>,
  ) =>
    launchOver(
      frame,
      [position],
      `${key} ${stored ? 'values' : 'ones'} ${entry.key}`,
      { ...(stored && { x_values: read(stored) }), ...entry.columns, x_to: access(out) },
      (e, at) => [set(at(e)[0]!, e)],
    )
  if (distinct || dtype === 'bool') scatterValues('scatter', write, (to, e) => store('x_to', to, value(e)))
  else {
    if (!Object.is(fill, 0)) scatterValues('start sums', write, (to) => store('x_to', to, zero(dtype)))
    scatterValues('sum', update, (to, e) => atomic('+', 'x_to', to, value(e)))
  }
  return { values: out, entries: null }
}
