/** What queries ask of values. */
import { fail } from '../ast/diagnostic.ts'
import { add, binary, div, type Expr, int, load, lt, mod, not, select, sub, variable } from '../ir/expr.ts'
import type { Query } from '../ir/format.ts'
import { ENTRY, type Frame } from './frame.ts'
import { flag, get, next, store } from './kernel.ts'
import { keysOf, type Scope } from './keys.ts'
import { differs, orderBy, type SortKey } from './order.ts'
import { type Column, natural, read, write } from './queue.ts'
import { reduce, scan } from './scan.ts'

const BITS = '@bits'
const ENTRIES = '@entries'

/** @throws SptError `convert/unsupported` where two entries have the same coordinates */
async function needDistinct(frame: Frame, scope: Scope, name: string): Promise<void> {
  if (scope.distinct || frame.n < 2) return
  const dims = scope.dims.map((d) => ({ expr: variable(d.name), extent: d.extent }))
  await orderBy(frame, dims)
  const { queue: q, n } = frame
  const t = frame.terms(dims.map((d) => d.expr))
  const cell = q.cells()
  reduce(q, {
    ...t,
    key: `repeated ${t.key}`,
    n,
    op: 'max',
    values: (e) => [flag(not(differs(t.at, e)))],
    count: 1,
    cells: cell,
  })
  const [found = 0] = await q.numbers([cell])
  if (found > 0)
    fail({
      code: 'convert/unsupported',
      message: `${name} asks for values, and entries are repeated`,
      expected: 'a tensor that has each coordinate once',
      hint: 'add up equal coordinates before, or bind the tensor from the host',
    })
}

export async function valueColumn(frame: Frame, name: string, scope: Scope): Promise<void> {
  await needDistinct(frame, scope, name)
  const { queue: q, n } = frame
  frame.signed.add(name)
  if (!scope.values) {
    frame.signed.delete(name)
    return frame.compute(name, int(1))
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
  await needDistinct(frame, scope, name)
  const { values } = scope
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
  frame.sortedBy = frame.sortedBy.slice(0, by.length)
  const { queue: q, n } = frame
  const t = frame.terms(by)
  const out = q.column(n, 'i32', name)
  scan(q, {
    ...t,
    key: `largest ${t.key}`,
    n,
    op: '+',
    columns: { ...t.columns, x_out: write(out) },
    value: () => int(1),
    ...(by.length > 0 ? { reset: (e: Expr) => differs(t.at, e) } : {}),
    body: (e, sum) => [store('x_out', e, sum)],
  })
  frame.set(name, out)
}

const MOST = 2 ** 31 - 1
const LEAST = -(2 ** 31)

/** Keys that rise while magnitudes fall, from the values' bits read as i32 words. */
function magnitudeKeys(frame: Frame, values: Column): Expr[] {
  const words = frame.queue.device.storage === 'words'
  const { dtype } = values
  frame.tables.set(BITS, { ...values, dtype: 'i32' })
  frame.signed.add(BITS)
  if (frame.entry) frame.tables.set(ENTRIES, frame.entry)
  const at = frame.entry ? load(ENTRIES, [variable(ENTRY)], 'i32') : variable(ENTRY)
  const word = (k: Expr): Expr => load(BITS, [k], 'i32')
  /** Without the sign. */
  const falling = (w: Expr): Expr => sub(int(MOST), select(lt(w, int(0)), sub(w, int(LEAST)), w))
  if (dtype === 'f32' || (words && (dtype === 'f16' || dtype === 'bf16'))) return [falling(word(at))]
  if (dtype === 'i32' || (words && dtype === 'i8')) {
    const w = word(at)
    return [sub(int(MOST), select(lt(w, int(0)), sub(int(0), binary('max', w, int(-MOST))), w))]
  }
  if (dtype === 'f64') {
    const low = word(add(at, at))
    const half = div(low, int(2))
    const unsigned = select(lt(half, int(0)), add(add(half, int(2 ** 30)), int(2 ** 30)), half)
    return [falling(word(next(add(at, at)))), sub(int(MOST), unsigned), sub(int(1), mod(low, int(2)))]
  }
  return fail({
    code: 'convert/unsupported',
    message: `values of type ${dtype} cannot be ordered by magnitude on ${frame.queue.device.name}`,
    expected: 'f32, f64 or i32',
    hint: 'convert the values to f32 before',
  })
}
