/**
 * Reduction simplification for prefixes such as running sums (Gautam and Rajopadhye, POPL 2006). Invariant reached: if each iteration of a
 * serial loop reduces a prefix of the same values, which grows by a constant per iteration, each value is combined once. A register
 * carries the result to the next iteration, which adds the new values in the same order. Quadratic work becomes linear.
 * Only nests of one thread are rewritten.
 */
import { coefficientOf, keepTerms, linear, sumExpr } from '../../analysis/integers/linear.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { add, binary, bool, type Expr, int, load, lt, mul, sub, variable } from '../../ir/expressions/expr.ts'
import { mentionsSome, readsSome, substitute } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { mapSame } from '../../ir/lists.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { boundVarsOf } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { storeIdentity } from '../../ir/statements/reductions.ts'
import { alloc, forLoop, local, reduction, store, when } from '../../ir/statements/statement-builders.ts'
import { type Body, mapBodies, stmt, withBody } from '../../ir/statements/tree.ts'
import { DTYPE_BYTES, scalarType } from '../../ir/values/dtype.ts'
import { initialValue } from '../../ir/values/monoid.ts'

export function simplifyPrefixReductions(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const go = (body: Body): Body =>
    mapSame(body, (s) => {
      const inside = mapBodies(s, go)
      return inside.kind === 'for' ? continued(inside, names) : inside
    })
  const isSerial = (s: Stmt): boolean => loopsOf([s]).every((l) => l.mode.kind !== 'bind' && !l.cooperative)
  const body = mapSame(kernel.body, (s) => (isSerial(s) ? go([s])[0]! : s))
  return withBody(kernel, body)
}

/** The inner loop of iteration k reduces the first `first + k · more` values. */
interface Prefix {
  readonly inner: For
  readonly reduce: Reduce
  readonly first: Expr
  readonly more: number
}

const inOrder = (l: For): boolean =>
  (l.mode.kind === 'serial' || l.mode.kind === 'unroll') && l.guards.length === 0

function continued(loop: For, names: Names): Stmt {
  if (!inOrder(loop)) return loop
  const prefixes = loop.body.map((s, k) => {
    const next = loop.body[k + 1]
    return next && prefixOf(loop, s, next)
  })
  const before: Stmt[] = []
  const body = loop.body.flatMap((s, k): Body => {
    const prefix = prefixes[k]
    if (!prefix) return prefixes[k - 1] ? [] : [s]
    const register = inRegister(loop, prefix, names)
    before.push(...register.before)
    return register.inside
  })
  return before.length > 0 ? when(bool(true), [...before, stmt({ ...loop, body })]) : loop
}

/** Matches an initialisation with the identity and the reduction loop after it; undefined if the loop is not a prefix. */
function prefixOf(loop: For, start: Stmt, inner: Stmt): Prefix | undefined {
  if (start.kind !== 'store' || inner.kind !== 'for' || !inner.reduce || !inOrder(inner)) return undefined
  const [reduce, ...others] = inner.body
  if (reduce?.kind !== 'reduce' || others.length > 0 || reduce.init || reduce.atomic || reduce.lanes)
    return undefined
  const [target, ...more] = reduce.targets
  if (
    !target ||
    more.length > 0 ||
    target.buffer !== start.buffer ||
    DTYPE_BYTES[scalarType(target.dtype)] < 4
  )
    return undefined
  const isSame = target.index.every((e, k) => sameExpr(e, start.index[k]!))
  if (!isSame || !sameExpr(start.value, initialValue(reduce.reducer.identity[0]!, target.dtype)))
    return undefined
  return lengthsOf(loop, inner, reduce)
}

function lengthsOf(loop: For, inner: For, reduce: Reduce): Prefix | undefined {
  const each = coefficientOf(inner.extent, loop.var)
  const isOther = ({ term }: { readonly term: Expr }): boolean =>
    term.kind !== 'var' || term.name !== loop.var
  const first = sumExpr(keepTerms(linear(inner.extent), isOther))
  if (each < 0 || (each > 0 && !(first.kind === 'const' && first.value >= 0))) return undefined
  const bound = new Set([...boundVarsOf(loop.body), loop.var])
  bound.delete(inner.var)
  const written = writesOf(loop.body)
  const moves = (e: Expr): boolean => mentionsSome(e, bound) || readsSome(e, written)
  return moves(first) || reduce.values.some(moves) ? undefined : { inner, reduce, first, more: each }
}

/** Returns the initialisation of the register (`before`), and the statements that replace the initialisation and the loop (`inside`). */
function inRegister(loop: For, { inner, reduce, first, more }: Prefix, names: Names) {
  const [target] = reduce.targets
  const { buffer, dtype, index } = target!
  const register = local(names.fresh(`${buffer}_before`), dtype)
  const all = load(register.name, [int(0)], dtype)
  const combined = (position: Expr): Reduce =>
    reduction({
      ...reduce,
      targets: [all],
      values: reduce.values.map((e) => substitute(e, new Map([[inner.var, position]]))),
    })
  const over = (extent: Expr, from: Expr): Stmt => {
    if (extent.kind === 'const' && extent.value === 1) return combined(from)
    const name = names.fresh(inner.name)
    const { reduce, mode, nest, span } = inner
    return forLoop(name, extent, [combined(add(from, variable(name)))], {
      name: inner.name,
      reduce,
      mode,
      nest,
      span,
    })
  }
  const at = variable(loop.var)
  const isFirst = first.kind === 'const' && first.value === 0
  return {
    before: [alloc(register), ...storeIdentity(reduce, [all])],
    inside: [
      ...(isFirst ? [] : [when(binary('eq', at, int(0)), [over(first, int(0))])]),
      ...(more > 0
        ? [when(lt(int(0), at), [over(int(more), add(first, mul(sub(at, int(1)), int(more))))])]
        : []),
      store(buffer, index, all),
    ],
  }
}
