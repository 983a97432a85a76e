/**
 * Queries on a device: one value for each entry (`ir/format.ts`), by putting entries in the order that makes groups
 * runs, and a scan that starts over with each. The order stays: what is built next often wants the same.
 */
import { invariant } from '../../../ast/diagnostic.ts'
import { when } from '../../../ir/build.ts'
import { add, and, binary, type Expr, eq, int, load, lt, search, select, variable } from '../../../ir/expr.ts'
import type { Query } from '../../../ir/format.ts'
import { type Column, natural, write } from './column-types.ts'
import type { Frame } from './frame.ts'
import { before, flag, get, next, store } from './kernel.ts'
import { keysOf, type Scope } from './keys.ts'
import { differs, distinctBefore, orderBy } from './order.ts'
import { scan } from './scan.ts'
import { largest, valueColumn } from './values.ts'

/**
 * Makes a column for each query under its name; later queries may mention earlier ones.
 * @throws SptError `format/map-range`
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

type Counting = Extract<Query, { kind: 'count' | 'rank' }>

async function rank(frame: Frame, { name, by, of }: Counting): Promise<void> {
  await orderBy(frame, await keysOf(frame, [...by, ...of]))
  distinctBefore(frame, name, by, of)
  frame.rising.set(name, { by, of })
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
