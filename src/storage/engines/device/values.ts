/** What queries ask of values. */
import { invariant } from '../../../ast/diagnostic.ts'
import {
  add,
  binary,
  call,
  cast,
  div,
  type Expr,
  int,
  load,
  lt,
  mod,
  select,
  sub,
  variable,
} from '../../../ir/expr.ts'
import type { Query } from '../../../ir/format.ts'
import { type Column, natural, read, update, write } from './column-types.ts'
import { ENTRY, type Frame } from './frame.ts'
import { atomic, flag, get, next, store } from './kernel.ts'
import { keysOf, type Scope } from './keys.ts'
import { differs, distinctBefore, orderBy, type SortKey } from './order.ts'
import type { Queue } from './queue.ts'
import { scan } from './scan.ts'

const BITS = '@bits'
const ENTRIES = '@entries'

/**
 * Values for queries where coordinates may be equal: each entry has the sum of all that are equal to it, in the widest
 * type that the device has. The stored ones where no two are.
 */
export async function sumsOfEqual(
  frame: Frame,
  values: Column,
  dims: Scope['dims'],
): Promise<{ readonly sums: Column; readonly distinct: boolean }> {
  await orderBy(
    frame,
    dims.map((d) => ({ expr: variable(d.name), extent: d.extent })),
  )
  const { queue: q, n } = frame
  const t = frame.terms(dims.map((d) => variable(d.name)))
  const groups = q.column(n, 'i32', 'groups')
  const total = q.cells()
  scan(q, {
    ...t,
    key: `equal ${t.key}`,
    n,
    op: '+',
    columns: { ...t.columns, x_groups: write(groups) },
    value: (e) => flag(differs(t.at, e)),
    body: (e, sum, own) => [store('x_groups', e, add(sum, add(own, int(-1))))],
    total,
  })
  const [count = 0] = await q.numbers([total])
  if (count === n) {
    q.release(groups)
    return { sums: values, distinct: true }
  }
  const wide = q.device.storage === 'words' ? 'f32' : 'f64'
  const found = q.column(count, wide, 'sums')
  q.clear(found)
  const sums = q.column(values.length, wide, 'sums')
  const { entry } = frame
  const columns = { x_groups: natural(groups), ...(entry ? { x_entry: natural(entry) } : {}) }
  const at = (e: Expr): Expr => (entry ? get('x_entry', e) : e)
  q.launch({
    key: `sums of equal ${entry !== null}`,
    threads: n,
    columns: { ...columns, x_values: read(values), x_found: update(found) },
    body: (e) => [
      atomic('+', 'x_found', get('x_groups', e), cast(load('x_values', [at(e)], values.dtype), wide)),
    ],
  })
  q.launch({
    key: `sums to entries ${entry !== null}`,
    threads: n,
    columns: { ...columns, x_found: read(found), x_sums: write(sums) },
    body: (e) => [store('x_sums', at(e), load('x_found', [get('x_groups', e)], wide))],
  })
  q.release(groups, found)
  return { sums, distinct: false }
}

export function valueColumn(frame: Frame, name: string, scope: Scope): void {
  const { queue: q, n } = frame
  frame.signed.add(name)
  if (!scope.values) {
    frame.signed.delete(name)
    frame.compute(name, int(1))
    return
  }
  const { values } = scope
  const out = q.column(n, values.dtype, name)
  const { entry } = frame
  q.launch({
    key: `value ${entry ? 'entry' : ''}`,
    threads: n,
    columns: { x_values: read(values), ...(entry ? { x_entry: natural(entry) } : {}), x_out: write(out) },
    body: (e) => [store('x_out', e, load('x_values', [entry ? get('x_entry', e) : e], values.dtype))],
  })
  frame.set(name, out)
}

/** By decreasing magnitude: the bits of positive reals have their order. */
export async function largest(
  frame: Frame,
  { name, by }: Extract<Query, { kind: 'largest' }>,
  scope: Scope,
): Promise<void> {
  const values = scope.values && ordered(frame.queue, scope.values)
  const keys = await keysOf(frame, by)
  const parts: SortKey[] = []
  if (values) {
    const found = magnitudeKeys(frame, values)
    found.forEach((e, k) => {
      frame.compute(`@magnitude ${k}`, e)
      parts.push({ expr: variable(`@magnitude ${k}`), extent: k === 2 ? 2 : 2 ** 31 })
    })
  }
  const dims = scope.dims.map((d) => ({ expr: variable(d.name), extent: d.extent }))
  await orderBy(frame, [...keys, ...parts, ...dims])
  for (const k of parts.keys()) frame.drop(`@magnitude ${k}`)
  for (const t of [BITS, ENTRIES]) frame.tables.delete(t)
  if (values !== scope.values) frame.queue.release(values)
  frame.sortedBy = frame.sortedBy.slice(0, by.length)
  // Equal coordinates have equal values, and one place.
  distinctBefore(
    frame,
    name,
    by,
    dims.map((d) => d.expr),
  )
}

const MOST = 2 ** 31 - 1
const LEAST = -(2 ** 31)

/** Keys that rise while magnitudes fall, from the values' bits read as i32 words. */
function magnitudeKeys(frame: Frame, values: Column): Expr[] {
  const { dtype } = values
  frame.tables.set(BITS, { ...values, dtype: 'i32' })
  frame.signed.add(BITS)
  if (frame.entry) frame.tables.set(ENTRIES, frame.entry)
  const at = frame.entry ? load(ENTRIES, [variable(ENTRY)], 'i32') : variable(ENTRY)
  const word = (k: Expr): Expr => load(BITS, [k], 'i32')
  /** Without the sign. */
  const falling = (w: Expr): Expr => sub(int(MOST), select(lt(w, int(0)), sub(w, int(LEAST)), w))
  if (dtype === 'f32') return [falling(word(at))]
  if (dtype === 'i32') {
    const w = word(at)
    return [sub(int(MOST), select(lt(w, int(0)), sub(int(0), binary('max', w, int(-MOST))), w))]
  }
  invariant(dtype === 'f64', `${dtype} was not made wider`)
  const low = word(add(at, at))
  const half = div(low, int(2))
  const unsigned = select(lt(half, int(0)), call('bit_xor', [half, int(LEAST)]), half)
  return [falling(word(next(add(at, at)))), sub(int(MOST), unsigned), sub(int(1), mod(low, int(2)))]
}

/** Values of a type whose words `magnitudeKeys` can order; narrower ones fit f32. */
function ordered(q: Queue, values: Column): Column {
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
