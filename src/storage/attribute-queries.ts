/**
 * Attribute queries (Chou, Kjolstad and Amarasinghe, PLDI 2020, section 5): one value for each stored coordinate;
 * `ir/format.ts` says what each is.
 */
import { boundsOf } from '../analysis/integers/ranges.ts'
import { fail, invariant } from '../ast/diagnostic.ts'
import { add, and, binary, type Expr, eq, ge, int, load, lt, search, select, variable } from '../ir/expr.ts'
import type { Query } from '../ir/format.ts'
import type { Column, Frame, Scope } from './column-engine.ts'
import { pointAt } from './coordinate-text.ts'
import type { Coroutine } from './coroutines.ts'

type QueryOf<K extends Query['kind']> = Extract<Query, { kind: K }>

/**
 * Makes a column for each query under its name; queries may mention the ones before them.
 * @throws SptError `format/map-range`, `format/map-overflow`, `format/map-expression`, `format/unknown-name`
 */
export function* evaluateQueries<C extends Column>(
  frame: Frame<C>,
  queries: readonly Query[],
  scope: Scope<C>,
): Coroutine<void> {
  for (const q of queries) {
    yield* evaluateQuery(frame, q, scope)
    if (q.kind !== 'value') frame.bounds.set(q.name, boundsOfQuery(frame, q, scope))
  }
}

function boundsOfQuery<C extends Column>(frame: Frame<C>, q: Query, scope: Scope<C>): [number, number] {
  if (q.kind === 'held') return [0, 1]
  if (q.kind === 'find') return [-1, scope.lists.get(q.list)?.length ?? 0]
  if (q.kind === 'place') return [0, Math.max(0, (scope.places.get(q.sort)?.length ?? 1) - 1)]
  return [0, frame.n]
}

function* evaluateQuery<C extends Column>(frame: Frame<C>, q: Query, scope: Scope<C>): Coroutine<void> {
  const { engine } = frame
  switch (q.kind) {
    case 'count':
    case 'rank': {
      const bare = new Set([...q.by, ...q.of].flatMap((e) => (e.kind === 'var' ? [e.name] : [])))
      const apart = scope.distinct && scope.dims.every((d) => bare.has(d.name))
      return yield* q.kind === 'rank' ? engine.rank(frame, q, apart) : engine.count(frame, q, apart)
    }
    case 'value':
      if (!scope.values) return engine.compute(frame, q.name, int(1))
      frame.signed.add(q.name)
      return engine.takeValues(frame, q.name, scope.values)
    case 'largest':
      return yield* engine.largestFirst(frame, q, scope)
    case 'held':
      return held(frame, q, scope)
    case 'place':
      return yield* placeOf(frame, q, scope)
    case 'find': {
      const list = scope.lists.get(q.list)
      invariant(list, `no list ${q.list}`)
      frame.tables.set(`@list ${q.list}`, list)
      frame.signed.add(q.name)
      const length = frame.sized(list.length, `@length ${q.list}`)
      return engine.compute(
        frame,
        q.name,
        add(search('upper', `@list ${q.list}`, int(0), length, q.of), int(-1)),
      )
    }
  }
}

/** The place of a coordinate in a sort. Only of what may be no coordinate is it looked whether it is one. */
function* placeOf<C extends Column>(frame: Frame<C>, q: QueryOf<'place'>, scope: Scope<C>): Coroutine<void> {
  const places = scope.places.get(q.sort)
  invariant(places, `no sort ${q.sort}`)
  const known = boundsOf(q.of, (name) => frame.range(name))
  if (frame.n > 0 && !(known && known.lo >= 0 && known.hi < places.length)) {
    const extent = frame.sized(places.length, `@places of ${q.sort}`)
    const outside = binary('or', lt(q.of, int(0)), ge(q.of, extent))
    const [at = -1] = yield* frame.engine.first(frame, [outside])
    if (at >= 0) {
      const [x] = yield* frame.engine.valuesAt(frame, [q.of], at)
      fail({
        code: 'format/map-range',
        message: `at ${yield* pointAt(frame, scope.dims, at)} the place of coordinate ${x} is asked for`,
        ...(q.span ? { span: q.span } : {}),
        expected: `a coordinate from 0 to ${places.length - 1}`,
        hint: `ask ${q.sort}[…] for coordinates of the dimension that is sorted`,
      })
    }
  }
  frame.tables.set(`@places ${q.sort}`, places)
  frame.engine.compute(frame, q.name, load(`@places ${q.sort}`, [q.of], 'i32'))
}

/** Whether the set has the coordinate: a search on each level of its tree, in the segment that the last one found. */
function held<C extends Column>(frame: Frame<C>, q: QueryOf<'held'>, scope: Scope<C>): void {
  const levels = scope.sets.get(q.set)
  invariant(levels, `no set ${q.set}`)
  const { dims } = scope
  if (levels.some((l) => l.indices.length === 0)) {
    frame.engine.compute(frame, q.name, int(0))
    return
  }
  // The first dimension is dense, but where it is the only one.
  const dense = dims.length - levels.length
  let position: Expr = dense > 0 ? variable(dims[0]!.name) : int(0)
  let found: Expr = eq(int(0), int(0))
  for (const [k, { indptr: starts, indices: coordinates }] of levels.entries()) {
    const c = variable(dims[k + dense]!.name)
    const [indptr, indices] = [`@set ${k} indptr`, `@set ${k} indices`]
    frame.tables.set(indptr, starts)
    frame.tables.set(indices, coordinates)
    const end = load(indptr, [add(position, int(1))], 'i32')
    const at = search('lower', indices, load(indptr, [position], 'i32'), end, c)
    found = and(found, select(lt(at, end), eq(load(indices, [at], 'i32'), c), eq(int(0), int(1))))
    position = select(found, at, int(0))
  }
  frame.engine.compute(frame, q.name, select(found, int(1), int(0)))
}
