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
  and,
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
import { substitute } from '../ir/expressions/expr-tree.ts'
import { sameExpr } from '../ir/expressions/structural-equality.ts'
import { INT_RANGE } from '../ir/values/dtype.ts'
import type { Monoid } from '../ir/values/monoid.ts'
import { axesOfCoordinates } from './elements.ts'
import { rejectReducer } from './rejections.ts'

const or = (a: Expr, b: Expr): Expr => binary('or', a, b)

type Prefers = (x: readonly Expr[], y: readonly Expr[]) => Expr

/** The condition that a combine of x and y returns x and not y; undefined for other combines. */
function preferenceOf({ result, left, right }: Monoid): Prefers | undefined {
  const [first] = result
  if (result.length === 1 && first!.kind === 'binary' && (first!.op === 'max' || first!.op === 'min')) {
    const op = first!.op === 'max' ? 'gt' : 'lt'
    return ([x], [y]) => binary(op, x!, y!)
  }
  if (first!.kind !== 'select') return undefined
  const { cond } = first!
  const isSelected = (e: Expr, k: number): boolean =>
    e.kind === 'select' && sameExpr(e.cond, cond) && sameExpr(e.then, left[k]!) && sameExpr(e.else, right[k]!)
  const isLeft: Prefers = (x, y) => {
    const operands = [...left.map((v, k) => [v.name, x[k]!]), ...right.map((v, k) => [v.name, y[k]!])]
    return substitute(cond, new Map(operands as [string, Expr][]))
  }
  return result.every(isSelected) ? (x, y) => and(isLeft(x, y), not(isLeft(y, x))) : undefined
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
