/**
 * Queries on a device: one value for each entry (`ir/format.ts`), by putting entries in the order that makes groups
 * runs, and a scan that starts over with each. The order stays: what is built next often wants the same.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import {
  add,
  and,
  binary,
  div,
  type Expr,
  eq,
  int,
  load,
  lt,
  mod,
  not,
  search,
  select,
  sub,
  variable,
} from '../ir/expr.ts'
import type { Query } from '../ir/format.ts'
import { boundsOf } from './bounds.ts'
import { ENTRY, type Frame } from './frame.ts'
import { before, flag, get, next, store, when } from './kernel.ts'
import { differs, orderBy, type SortKey } from './order.ts'
import { type Column, natural, read, write } from './queue.ts'
import { reduce, scan } from './scan.ts'

/** What queries need besides coordinates. */
export interface Scope {
  /** In the order of the dimensions. */
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** By entry of the source; `null` in a pattern. */
  readonly values: Column | null
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
  /** By sort: the place of each coordinate. */
  readonly places: ReadonlyMap<string, Column>
  readonly lists: ReadonlyMap<string, Column>
  /** Sets as trees: the segments of each coordinate of the first dimension, then the others level by level. */
  readonly sets: ReadonlyMap<string, readonly { readonly indptr: Column; readonly indices: Column }[]>
}

/**
 * Makes a column for each query under its name; later queries may mention earlier ones.
 * @throws SptError `convert/unsupported`, `format/map-range`
 */
export async function evaluateQueries(frame: Frame, queries: readonly Query[], scope: Scope): Promise<void> {
  for (const q of queries) {
    await evaluateQuery(frame, q, scope)
    if (q.kind !== 'value')
      frame.bounds.set(q.name, q.kind === 'find' ? [-1, frame.n] : [0, maximum(frame, q, scope)])
  }
}

function maximum(frame: Frame, q: Query, scope: Scope): number {
  if (q.kind === 'held') return 1
  if (q.kind === 'find') return scope.lists.get(q.list)?.length ?? 0
  if (q.kind === 'place') return Math.max(0, (scope.places.get(q.sort)?.length ?? 1) - 1)
  return frame.n
}

async function evaluateQuery(frame: Frame, q: Query, scope: Scope): Promise<void> {
  switch (q.kind) {
    case 'count':
    case 'rank': {
      const bare = new Set([...q.by, ...q.of].flatMap((e) => (e.kind === 'var' ? [e.name] : [])))
      const apart = scope.distinct && scope.dims.every((d) => bare.has(d.name))
      return q.kind === 'rank' ? rank(frame, q) : count(frame, q, apart)
    }
    case 'value':
      return valueColumn(frame, q.name, scope)
    case 'largest':
      return largest(frame, q, scope)
    case 'held':
      return held(frame, q.name, scope.sets.get(q.set), scope)
    case 'place': {
      const places = scope.places.get(q.sort)
      invariant(places, `no sort ${q.sort}`)
      frame.tables.set(`@places ${q.sort}`, places)
      return frame.compute(q.name, load(`@places ${q.sort}`, [q.of], 'i32'))
    }
    case 'find': {
      const list = scope.lists.get(q.list)
      invariant(list, `no list ${q.list}`)
      frame.tables.set(`@list ${q.list}`, list)
      frame.sizes.set(`@length ${q.list}`, list.length)
      frame.signed.add(q.name)
      const found = search('upper', `@list ${q.list}`, int(0), variable(`@length ${q.list}`), q.of)
      return frame.compute(q.name, before(found))
    }
  }
}

/** Expressions as keys from 0 on; what is not known of their values is measured. */
export async function keysOf(frame: Frame, exprs: readonly Expr[]): Promise<SortKey[]> {
  const range = (name: string) => {
    const size = frame.sizes.get(name)
    return frame.bounds.get(name) ?? (size === undefined ? undefined : ([size, size] as const))
  }
  const keys: SortKey[] = []
  for (const [k, expr] of exprs.entries()) {
    const [lo, hi] = boundsOf(expr, range) ?? (await measure(frame, expr))
    if (lo >= 0) keys.push({ expr, extent: hi + 1 })
    else {
      const name = `@least ${k}`
      frame.sizes.set(name, -lo)
      keys.push({ expr: add(expr, variable(name)), extent: hi - lo + 1 })
    }
  }
  return keys
}

/** Bounds of an expression over the entries, both including 0. */
export async function measure(frame: Frame, expr: Expr): Promise<readonly [number, number]> {
  const { queue: q, n } = frame
  const t = frame.terms([expr])
  const cells = q.cells(2)
  reduce(q, {
    ...t,
    key: `bounds ${t.key}`,
    n,
    op: 'max',
    values: (e) => {
      const x = t.at(e)[0]!
      return [x, sub(int(0), x)]
    },
    count: 2,
    cells,
  })
  const [hi = 0, lo = 0] = await q.numbers([cells, cells + 1])
  return [lo === 0 ? 0 : -lo, hi]
}

const BITS = '@bits'
const ENTRIES = '@entries'

type Counting = Extract<Query, { kind: 'count' | 'rank' }>

/** How many different tuples came before in the group: a scan over where tuples begin. */
async function rank(frame: Frame, { name, by, of }: Counting): Promise<void> {
  await orderBy(frame, await keysOf(frame, [...by, ...of]))
  const { queue: q, n } = frame
  const t = frame.terms([...by, ...of])
  const group = (e: Expr): readonly Expr[] => t.at(e).slice(0, by.length)
  const out = q.column(n, 'i32', name)
  scan(q, {
    ...t,
    key: `rank ${by.length} ${t.key}`,
    n,
    op: '+',
    columns: { ...t.columns, x_out: write(out) },
    value: (e) => flag(differs(t.at, e)),
    reset: (e) => differs(group, e),
    body: (e, sum, own) => [store('x_out', e, add(sum, add(own, int(-1))))],
  })
  frame.set(name, out)
}

/** The number of different tuples in the group, from its last entry to all of them by the group's number. */
async function count(frame: Frame, { name, by, of }: Counting, apart: boolean): Promise<void> {
  const keys = apart ? by : [...by, ...of]
  await orderBy(frame, await keysOf(frame, keys))
  const { queue: q, n } = frame
  const t = frame.terms(keys)
  const group = (e: Expr): readonly Expr[] => t.at(e).slice(0, by.length)
  const groups = q.column(n, 'i32', 'groups')
  const numbers = frame.terms(by)
  scan(q, {
    ...numbers,
    key: `groups ${numbers.key}`,
    n,
    op: '+',
    columns: { ...numbers.columns, x_groups: write(groups) },
    value: (e) => flag(differs(numbers.at, e)),
    body: (e, sum, own) => [store('x_groups', e, add(sum, add(own, int(-1))))],
  })
  const totals = q.column(n, 'i32', 'counts')
  const rest: Record<string, ReturnType<typeof natural>> = {
    x_groups: natural(groups),
    x_counts: write(totals),
  }
  scan(q, {
    ...t,
    key: `counts ${by.length} ${apart} ${t.key}`,
    n,
    op: '+',
    columns: { ...t.columns, ...rest },
    value: (e) => (apart ? int(1) : flag(differs(t.at, e))),
    reset: (e) => differs(group, e),
    body: (e, sum, own) => {
      const last = store('x_counts', get('x_groups', e), add(sum, own))
      const ends = binary('ne', get('x_groups', e), get('x_groups', next(e)))
      return [when(lt(next(e), variable('x_n')), [when(ends, [last])], [last])]
    },
  })
  const out = q.column(n, 'i32', name)
  q.launch({
    key: 'count of group',
    threads: n,
    columns: { x_groups: natural(groups), x_counts: natural(totals), x_out: write(out) },
    body: (e) => [store('x_out', e, get('x_counts', get('x_groups', e)))],
  })
  frame.set(name, out)
  q.release(groups, totals)
}

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

async function valueColumn(frame: Frame, name: string, scope: Scope): Promise<void> {
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
async function largest(
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

/** Whether the set has the coordinate: a search on each level of its tree, in the segment that the last one found. */
function held(
  frame: Frame,
  name: string,
  levels: readonly { readonly indptr: Column; readonly indices: Column }[] | undefined,
  scope: Scope,
): void {
  invariant(levels, `no set for ${name}`)
  const [first, ...rest] = scope.dims
  invariant(first, 'a set has dimensions')
  if (levels.some((l) => l.indices.length === 0)) {
    frame.compute(name, int(0))
    return
  }
  let position: Expr = variable(first.name)
  let found: Expr = eq(int(0), int(0))
  rest.forEach((d, k) => {
    const level = levels[k]
    invariant(level, `no level of ${d.name}`)
    const indptr = `@set ${k} indptr`
    const indices = `@set ${k} indices`
    frame.tables.set(indptr, level.indptr)
    frame.tables.set(indices, level.indices)
    const end = load(indptr, [next(position)], 'i32')
    const at = search('lower', indices, load(indptr, [position], 'i32'), end, variable(d.name))
    found = and(
      found,
      select(lt(at, end), eq(load(indices, [at], 'i32'), variable(d.name)), eq(int(0), int(1))),
    )
    position = select(found, at, int(0))
  })
  frame.compute(name, flag(found))
}
