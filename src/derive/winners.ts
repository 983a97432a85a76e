/**
 * Reductions that select one of their operands, such as `max=` and argmax monoids: the gradient goes to the selected
 * operand. Of equal operands, the first in the order of the coordinates is selected, by a reduction that also carries
 * the coordinates. It compares operands with each other, so rounding has no effect.
 */
import type { Write } from '../analysis/sparsity/writes.ts'
import { type Axis, isAttached, isFused, isGathered, repeatsCoordinates } from '../ir/coordinates/axis.ts'
import type { Buffer1, Iteration, Reduce1 } from '../ir/coordinates/stage1.ts'
import { iteration, reduce1 } from '../ir/coordinates/stage1-tree.ts'
import type { Names } from '../ir/expressions/bound-names.ts'
import {
  all,
  and,
  type Binary,
  binary,
  bool,
  cast,
  constant,
  type Expr,
  eq,
  load,
  lt,
  not,
  select,
  type Var,
  variable,
} from '../ir/expressions/expr.ts'
import { children, substitute } from '../ir/expressions/expr-tree.ts'
import { sameExpr } from '../ir/expressions/structural-equality.ts'
import { INT_RANGE } from '../ir/values/dtype.ts'
import { isCompare } from '../ir/values/math.ts'
import type { Monoid } from '../ir/values/monoid.ts'
import { axesOfCoordinates } from './elements.ts'
import { rejectReducer } from './rejections.ts'

const or = (a: Expr, b: Expr): Expr => binary('or', a, b)

const isMax = (e: Expr): boolean => e.kind === 'binary' && e.op === 'max'

type Prefers = (x: readonly Expr[], y: readonly Expr[]) => Expr

/** The results of a combine of x and y. */
const combined = (
  { result, left, right }: Monoid,
  x: readonly Expr[],
  y: readonly Expr[],
): readonly Expr[] => {
  const operands = new Map([
    ...left.map((v, k) => [v.name, x[k]!] as const),
    ...right.map((v, k) => [v.name, y[k]!] as const),
  ])
  return result.map((e) => substitute(e, operands))
}

/** The condition that a combine of x and y returns x and not y; undefined for other combines. */
function preferenceOf(m: Monoid): Prefers | undefined {
  const { result, left, right } = m
  const [first] = result
  if (result.length === 1 && first!.kind === 'binary' && (first!.op === 'max' || first!.op === 'min')) {
    // NaN comes before all other values, as in the combine.
    const op = first!.op === 'max' ? 'le' : 'ge'
    return ([x], [y]) => and(eq(y!, y!), not(binary(op, x!, y!)))
  }
  const cond = first!.kind === 'select' ? first!.cond : undefined
  const isSelected = (e: Expr, k: number): boolean =>
    e.kind === 'select' &&
    sameExpr(e.cond, cond!) &&
    sameExpr(e.then, left[k]!) &&
    sameExpr(e.else, right[k]!)
  if (cond && result.every(isSelected)) {
    const isLeft: Prefers = (x, y) => combined({ ...m, result: [cond] }, x, y)[0]!
    return (x, y) => and(isLeft(x, y), not(isLeft(y, x)))
  }
  if (!selectsByOrder(m)) return undefined
  // No value is computed again and compared: each component of the result is the left one, or equal to it.
  const isLeft = (e: Expr): Expr => {
    if (e.kind === 'var') return bool(left.some((v) => v.name === e.name))
    const { a, b } = e as Binary
    const [c, then, other] =
      e.kind === 'select' ? [e.cond, e.then, e.else] : [binary(isMax(e) ? 'ge' : 'le', a, b), a, b]
    return or(and(c, isLeft(then)), and(not(c), isLeft(other)))
  }
  const picked = { ...m, result: result.map(isLeft) }
  return (x, y) => {
    const fromX = combined(picked, x, y)
    const equal = fromX.map((_, k) => eq(x[k]!, y[k]!))
    return and(
      all(fromX.map((c, k) => or(c, equal[k]!))),
      not(all(fromX.map((c, k) => or(not(c), equal[k]!)))),
    )
  }
}

/**
 * True if a combine returns one of its operands. It only compares components of the operands with each other, so that a
 * case for each order of each component decides.
 */
function selectsByOrder(m: Monoid): boolean {
  const { left, right } = m
  const componentOf = (e: Expr): number => {
    if (e.kind === 'var') return [...left, ...right].findIndex((v) => v.name === e.name) % left.length
    const isChoice = e.kind === 'binary' && (e.op === 'min' || e.op === 'max')
    const operands = isChoice ? [e.a, e.b] : e.kind === 'select' && isOrder(e.cond) ? [e.then, e.else] : []
    const [a = -1, b = -2] = operands.map(componentOf)
    return a === b ? a : -1
  }
  const isOrder = (e: Expr): boolean =>
    e.kind === 'binary' && isCompare(e.op)
      ? componentOf(e.a) >= 0 && componentOf(e.a) === componentOf(e.b)
      : e.kind !== 'var' && e.dtype === 'bool' && children(e).every(isOrder)
  if (!m.result.every((e, k) => componentOf(e) === k)) return false
  const cases = left.reduce<readonly (readonly number[])[]>(
    (orders) => orders.flatMap((c) => [0, 1, 2].map((order) => [...c, order])),
    [[]],
  )
  return cases.every((orders) => {
    const [x, y] = [1, 2].map((greater) =>
      left.map((v, k) => constant(orders[k] === greater ? 1 : 0, v.dtype)),
    ) as [Expr[], Expr[]]
    const made = combined(m, x, y)
    return [x, y].some((operand) => made.every((e, k) => sameExpr(e, operand[k]!)))
  })
}

/** True if `a` precedes `b` in lexicographic order. */
const precedes = (a: readonly Expr[], b: readonly Expr[]): Expr =>
  a.reduceRight<Expr>((rest, x, k) => or(lt(x, b[k]!), and(eq(x, b[k]!), rest)), bool(false))

/** The reducer over operands with coordinates. */
function withCoordinates(m: Monoid, prefers: Prefers, count: number, name: string): Monoid {
  const places = Array.from({ length: count }, (_, k) => ({ name: `c${k + 1}`, dtype: 'i32' as const }))
  const fields = [...m.fields, ...places]
  const side = (s: string): Var[] => fields.map((f) => variable(`${s}.${f.name}`, f.dtype))
  const [left, right] = [side('a'), side('b')]
  const n = m.fields.length
  const isFirst = and(not(prefers(right, left)), precedes(left.slice(n), right.slice(n)))
  const isLeft = or(prefers(left, right), isFirst)
  return {
    name,
    fields,
    identity: [...m.identity, ...places.map(() => constant(INT_RANGE.i32[1], 'i32'))],
    left,
    right,
    result: fields.map((_, k) => select(isLeft, left[k]!, right[k]!)),
  }
}

function repeats(axis: Axis, axes: ReadonlyMap<string, Axis>): boolean {
  const stored = isAttached(axis) ? axes.get(axis.base)! : axis
  return isGathered(axis) || repeatsCoordinates(stored)
}

/** The operands of a reduction that its result depends on. */
export interface Operands {
  readonly buffers: readonly Buffer1[]
  /** Computes the buffers, for example the coordinates of the selected operands. */
  readonly iterations: readonly Iteration[]
  /** Holds at these operands. */
  readonly conditions: readonly Expr[]
  /** Values with adjoints other than those of the result. */
  readonly seeds?: readonly { readonly value: Expr; readonly adjoint: Expr }[]
}

/** The selected operands of a reduction; undefined if its reducer does not select. */
export function winnersOf(
  w: Write,
  axes: ReadonlyMap<string, Axis>,
  buffers: ReadonlyMap<string, Buffer1>,
  names: Names,
): Operands | undefined {
  const { reducer } = w.stmt as Reduce1
  const prefers = preferenceOf(reducer)
  if (!prefers) return undefined
  const iters = w.iterations.flatMap((it) => it.iters)
  const coordinates = iters
    .filter((x) => x.kind === 'R')
    .flatMap(({ name, axis }) => {
      const a = axes.get(axis)!
      return isFused(a) ? a.members : [name]
    })
  const repeated = coordinates.find((c) => repeats(axesOfCoordinates(w, axes).get(c)!, axes))
  if (repeated !== undefined) rejectReducer(w.stmt as Reduce1, `: ${repeated} may visit a coordinate twice`)
  if (coordinates.length === 0) return { buffers: [], iterations: [], conditions: [] }
  const first = w.targets[0]!
  const local = (like: string, name: string, dtype: Buffer1['dtype']): Buffer1 => ({
    name: names.fresh(name),
    dtype,
    axes: buffers.get(like)!.axes,
    role: 'local',
    fill: 0,
    accumulate: dtype,
  })
  const selected = w.targets.map((t) => local(t.buffer, `${t.buffer}_first`, t.dtype as Buffer1['dtype']))
  const places = coordinates.map((c) => local(first.buffer, `${first.buffer}_${c}`, 'i32'))
  const name = names.fresh(`first_${reducer.name}`)
  const at = (b: Buffer1, k: number) => load(b.name, (w.targets[k] ?? first).index, b.dtype)
  const find = reduce1({
    reducer: withCoordinates(reducer, prefers, coordinates.length, name),
    targets: [...selected, ...places].map(at),
    values: [
      ...w.values.map((v, k) => cast(v, reducer.fields[k]!.dtype)),
      ...coordinates.map((c) => cast(variable(c), 'i32')),
    ],
  })
  const of = w.iterations.at(-1)!.name
  return {
    buffers: [...selected, ...places],
    iterations: [iteration({ name: names.fresh(`${of}_first`), iters, where: w.conditions, body: [find] })],
    conditions: coordinates.map((c, k) => eq(variable(c), load(places[k]!.name, first.index, 'i32'))),
  }
}
