/** Backward iterations: the summands of adjoints as statements over the domain of the statement that they come from. */
import { accessesOf } from '../analysis/dependence/coordinate-accesses.ts'
import { determined } from '../analysis/dependence/coordinate-injectivity.ts'
import { type Axis, isDenseRoot, operandsOfAxis } from '../ir/coordinates/axis.ts'
import type { Buffer1, Iter, Iteration, Let1 } from '../ir/coordinates/stage1.ts'
import { define1, iteration, reduce1 } from '../ir/coordinates/stage1-tree.ts'
import type { Names } from '../ir/expressions/bound-names.ts'
import { cast, type Expr, type Load, variable } from '../ir/expressions/expr.ts'
import { children, perExpr, walkExpr, withChildren } from '../ir/expressions/expr-tree.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import { isFloat } from '../ir/values/dtype.ts'
import { builtinMonoid } from '../ir/values/monoid.ts'

/** `target += value` for each point of the iterators at which the conditions hold. */
export interface Summand {
  readonly buffer: Buffer1
  readonly target: Load
  readonly value: Expr
  readonly iters: readonly Iter[]
  readonly conditions: readonly Expr[]
}

/** Summands over one domain that iterate in the same way. */
interface Group extends Pick<Summand, 'iters' | 'conditions'> {
  readonly key: string
  readonly summands: Summand[]
}

/**
 * The iterations of summands; summands of different tensors share one if their iterators have the same kinds.
 * @param of - Name of the forward iteration, a part of their names
 */
export function iterationsOfSummands(
  summands: readonly Summand[],
  of: string,
  axes: ReadonlyMap<string, Axis>,
  names: Names,
): readonly Iteration[] {
  const groups: Group[] = []
  for (const s of summands) {
    const iters = withUnitStride(withKinds(s, axes), s, axes)
    const key = JSON.stringify([iters.map((x) => [x.name, x.axis, x.kind]), s.conditions.map(keyOf)])
    const group = groups.find(
      (g) => g.key === key && g.summands.every((x) => x.buffer.name !== s.buffer.name),
    )
    if (group) group.summands.push(s)
    else groups.push({ key, iters, conditions: s.conditions, summands: [s] })
  }
  return groups.map(({ iters, conditions, summands: own }) => {
    const { lets, values } = withLets(
      own.map((s) => cast(s.value, s.buffer.accumulate)),
      names.copy(),
    )
    const sums = own.map((s, k) =>
      reduce1({
        reducer: builtinMonoid('+', s.buffer.dtype),
        targets: [s.target],
        values: [values[k]!],
      }),
    )
    const name = names.fresh([of, ...own.map((s) => s.buffer.name)].join('_'))
    return iteration({ name, iters, where: conditions, body: [...lets, ...sums] })
  })
}

/** The iterators, each S if the target determines its coordinates, otherwise R. */
function withKinds({ iters, target, buffer }: Summand, axes: ReadonlyMap<string, Axis>): readonly Iter[] {
  const all = iters.map((x) => ({ ...x, kind: 'S' as const }))
  const reducer = builtinMonoid('+', buffer.dtype)
  const body = [reduce1({ reducer, targets: [target], values: [target] })]
  const access = accessesOf([iteration({ name: target.buffer, iters: all, where: [], body })], axes).at(-1)!
  const by = determined(access, buffer.axes, axes)
  return access.around.map(({ iter, coords }) =>
    coords.every((c) => by.has(c.name)) ? iter : { ...iter, kind: 'R' as const },
  )
}

/** The iterators with the one innermost that is the last index of most elements, whose accesses are then contiguous. */
function withUnitStride(
  iters: readonly Iter[],
  { target, value }: Summand,
  axes: ReadonlyMap<string, Axis>,
): readonly Iter[] {
  const elements = new Map<string, Load>([[keyOf(target), target]])
  walkExpr(value, (e) => void (e.kind === 'load' && elements.set(keyOf(e), e)))
  const count = ({ name }: Iter): number =>
    [...elements.values()].map((l) => l.index.at(-1)).filter((e) => e?.kind === 'var' && e.name === name)
      .length
  const operands = iters.flatMap((x) => operandsOfAxis(axes.get(x.axis)!).flatMap(([, , axis]) => axis))
  const movable = iters.filter((x) => isDenseRoot(axes.get(x.axis)!) && !operands.includes(x.axis))
  const best = movable.reduce<Iter | undefined>((a, b) => (a && count(a) >= count(b) ? a : b), undefined)
  if (!best || count(best) <= count(iters.at(-1)!)) return iters
  return [...iters.filter((x) => x !== best), best]
}

/** The values with a `let` for each operation that they use more than once. */
function withLets(
  values: readonly Expr[],
  names: Names,
): { readonly lets: readonly Let1[]; readonly values: readonly Expr[] } {
  const uses = new Map<string, number>()
  const count = (e: Expr): void => {
    const before = uses.get(keyOf(e)) ?? 0
    uses.set(keyOf(e), before + 1)
    if (before === 0) for (const x of children(e)) count(x)
  }
  for (const v of values) count(v)
  const lets: Let1[] = []
  const variables = new Map<string, Expr>()
  const isShared = (e: Expr): boolean =>
    isFloat(e.dtype) &&
    (e.kind === 'binary' || e.kind === 'call' || e.kind === 'select') &&
    uses.get(keyOf(e))! > 1
  const shared = perExpr<Expr>((e, of) => {
    const known = variables.get(keyOf(e))
    if (known) return known
    const rebuilt = withChildren(e, children(e).map(of))
    if (!isShared(e)) return rebuilt
    const name = names.fresh('t')
    lets.push(define1(name, rebuilt))
    const v = variable(name, e.dtype)
    variables.set(keyOf(e), v)
    return v
  })
  return { lets, values: values.map(shared) }
}
