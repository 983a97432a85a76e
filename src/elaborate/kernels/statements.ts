/**
 * Elaboration of iterations and statements: AST → Stage I. A statement with an error is left out, and the error is
 * recorded.
 */
import { unreachable } from '../../ast/diagnostics/diagnostic.ts'
import { orList } from '../../ast/diagnostics/suggest.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { ACCESS_LEVELS, countText, MAX_LEVELS, MAX_NEST } from '../../ir/code-size-budgets.ts'
import { isAttached, isFused, isGathered, isStored, parentOf } from '../../ir/coordinates/axis.ts'
import type { Iter, Iteration, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { assign1, define1, iteration, reduce1, when1 } from '../../ir/coordinates/stage1-tree.ts'
import { cast, conjuncts, coordinateIn, type Expr, type Load } from '../../ir/expressions/expr.ts'
import { children, perExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { ExprType } from '../../ir/values/dtype.ts'
import { BUILTIN_REDUCERS, builtinMonoid, isBuiltinReducer, type Monoid } from '../../ir/values/monoid.ts'
import { report } from '../diagnostics.ts'
import { condition, elaborateExpr, settled } from '../expressions/expressions.ts'
import { coerce } from '../expressions/type-conversion.ts'
import { accessOf, bodyNames } from './kernel-accesses.ts'
import {
  type Declared,
  declare,
  inputWritten,
  Scope,
  type Seen,
  standsOn,
  unknownAxis,
} from './kernel-names.ts'

function elaborateBody(d: Declared, body: readonly Ast.Stmt[], outer: Scope): readonly Stmt1[] {
  const out: Stmt1[] = []
  const scope = new Scope(outer)
  for (const s of body) {
    if (s.kind === 'let') {
      const elaborated = settled(s.value, bodyNames(d, scope))
      // A name of a coordinate is a coordinate.
      const value = elaborated && (coordinateIn(elaborated) ?? elaborated)
      const own = free(d, scope, s.name, 'let')
      // A `let` with an invalid value still declares its name, and errors about its uses are not reported.
      const levels = value ? levelsOf(value, scope) : 0
      if (levels > MAX_LEVELS) {
        d.broken.add(s.name.name)
        tooManyLevels(s, levels)
        continue
      }
      if (value) scope.add({ ...letOf(s.name, value.dtype), levels })
      else d.broken.add(s.name.name)
      if (value && own) out.push(define1(s.name.name, value, s.span))
      continue
    }
    const built = statement(d, s, scope)
    if (built) out.push(built)
  }
  return out
}

/** The depth of a value with its `let`s substituted. */
const levelsOf = (value: Expr, scope: Scope): number =>
  perExpr<number>((e, of) => {
    if (e.kind === 'var') return scope.find(e.name)?.levels ?? 0
    return Math.max(0, ...children(e).map(of)) + (e.kind === 'load' ? ACCESS_LEVELS : 1)
  })(value)

const tooManyLevels = (s: Ast.Let, levels: number): null =>
  report('check/too-deep', s.span, {
    message: `${s.name.name} with nested \`let\`s is ${countText(levels)} operations deep (an access counts ${ACCESS_LEVELS})`,
    expected: `at most ${countText(MAX_LEVELS)}`,
    hint: 'store an intermediate value in a local buffer, and read the buffer in a separate iteration',
  })

const letOf = (name: Ast.Ident, dtype: ExprType): Seen => ({
  what: 'let',
  name: name.name,
  span: name.span,
  dtype,
  axis: null,
})

/** True if no declaration in scope has the name of a new iterator or `let`. */
function free(d: Declared, scope: Scope, name: Ast.Ident, what: 'let' | 'iterator', own?: string): boolean {
  const before = scope.find(name.name)
  const declared = name.name === own ? undefined : d.places.get(name.name)
  const place = before ?? declared
  if (!place) return true
  report('check/duplicate', name.span, {
    message: `the ${what} ${name.name} has the name of something in sight`,
    labels: [{ span: place.span, text: `the ${place.what} ${name.name} is declared here` }],
    hint: what === 'iterator' ? 'name the iterator: `other in axis`' : 'choose another name',
  })
  return false
}

function statement(d: Declared, s: Exclude<Ast.Stmt, Ast.Let>, scope: Scope): Stmt1 | null {
  switch (s.kind) {
    case 'iterate':
      return elaborateIteration(d, s, scope)
    case 'if': {
      const cond = condition(s.cond, bodyNames(d, scope))
      const then = elaborateBody(d, s.then, scope)
      const otherwise = elaborateBody(d, s.else, scope)
      return cond && when1(cond, then, otherwise, s.span)
    }
    case 'assign': {
      const targets = s.targets.map((t) => target(d, scope, t))
      const values = s.values.map((v, k) => valueFor(d, scope, v, targets[k] ?? null, false))
      if (targets.some((t) => !t) || values.some((v) => !v) || repeats(s, targets as Load[])) return null
      return assign1(targets as Load[], values as Expr[], s.span)
    }
    case 'reduce':
      return reduction(d, s, scope)
    default:
      return unreachable(s)
  }
}

/** The maximum number of iterators that are nested in each other in a body. */
const nestOf = (body: readonly Ast.Stmt[]): number =>
  Math.max(
    0,
    ...body.map((s) => {
      if (s.kind === 'iterate') return s.iters.length + nestOf(s.body)
      return s.kind === 'if' ? nestOf([...s.then, ...s.else]) : 0
    }),
  )

export function elaborateIteration(d: Declared, s: Ast.Iterate, outer: Scope): Iteration | null {
  const count = nestOf([s])
  if (count > MAX_NEST)
    return report('check/too-deep', s.name.span, {
      message: `${s.name.name} has ${count} iterators within each other`,
      expected: `at most ${MAX_NEST}`,
      hint: 'fuse several axes, and compute the coordinates with `/` and `%`',
    })
  const fresh = declare(d, s.name, 'iteration')
  const scope = new Scope(outer)
  const iters: (Iter | null)[] = []
  for (const it of s.iters) {
    const opened = openIter(d, it, scope)
    iters.push(opened && { name: it.name.name, axis: it.axis.name, kind: it.mode, span: it.span })
    for (const seen of opened ?? []) scope.add(seen)
  }
  if (iters.some((x) => x === null)) {
    // The names of invalid iterators are not reported again inside.
    for (const it of s.iters) if (!scope.find(it.name.name)) d.broken.add(it.name.name)
  }
  const where = s.where ? conditions(d, s.where, scope) : []
  const body = elaborateBody(d, s.body, scope)
  if (!where) return null
  if (!fresh || iters.some((x) => x === null)) return null
  return iteration({ name: s.name.name, iters: iters as Iter[], where, body, span: s.span })
}

function conditions(d: Declared, e: Ast.Expr, scope: Scope): readonly Expr[] | null {
  const cond = condition(e, bodyNames(d, scope))
  return cond && conjuncts(cond)
}

/** The names that an iterator declares: its own name, or the names of the members of a fused axis. */
function openIter(d: Declared, it: Ast.Iter, scope: Scope): readonly Seen[] | null {
  const axis = d.axes.get(it.axis.name)
  if (!axis) {
    return d.broken.has(it.axis.name) ? null : unknownAxis(d, it.axis)
  }
  const seen = (name: string, of: NonNullable<typeof axis>): Seen => ({
    what: 'iterator',
    name,
    span: it.span,
    dtype: 'index',
    axis: of,
  })
  // An attached axis is a view of its base, and an iterator over it may have either name.
  const own = isAttached(axis) && it.name.name === axis.base ? axis.base : axis.name
  if (!free(d, scope, it.name, 'iterator', own)) return null
  if (isFused(axis)) {
    const members = axis.members.map((m) => ({ name: m, span: it.axis.span }))
    if (!members.every((m) => free(d, scope, m, 'iterator', m.name))) return null
    return members.map((m) => seen(m.name, d.axes.get(m.name)!))
  }
  const parent = isStored(axis) ? parentOf(axis) : isAttached(axis) ? axis.parent : null
  if (parent !== null && !standsOn(scope, parent)) {
    const gathered = scope.iterators.find((s) => isGathered(s.axis) && s.axis.base === parent)
    return report('check/no-parent', it.span, {
      message: `${axis.name} is iterated without the parent ${parent}`,
      ...(axis.span && { labels: [{ span: axis.span, text: `${axis.name} is declared here` }] }),
      hint: gathered
        ? `${gathered.name} is a list of coordinates: declare an axis attached(${axis.name}, ${gathered.axis!.name})`
        : `iterate ${parent} before ${axis.name}, in the same or an enclosing iteration`,
    })
  }
  return [seen(it.name.name, axis)]
}

function target(d: Declared, scope: Scope, e: Ast.Access): Load | null {
  const l = accessOf(d, scope, e)
  const buffer = l && d.buffers.get(l.buffer)
  return buffer?.role === 'in' ? inputWritten({ name: buffer.name, span: e.span }, buffer.span) : l
}

/** A value in the type of a target: the storage type, or with `wide` the type in which it accumulates. */
function valueFor(d: Declared, scope: Scope, e: Ast.Expr, to: Load | null, wide: boolean): Expr | null {
  const t = elaborateExpr(e, bodyNames(d, scope))
  if (!t || !to) return null
  const buffer = d.buffers.get(to.buffer)!
  return coerce(t, wide ? buffer.accumulate : buffer.dtype, buffer.name)
}

function reducerOf(d: Declared, s: Ast.Reduce, targets: readonly (Load | null)[]): Monoid | null {
  const { name, span } = s.reducer
  if (!isBuiltinReducer(name)) {
    const monoid = d.monoid(s.reducer)
    if (monoid && monoid.fields.length !== targets.length)
      return report('check/reducer-arity', s.span, {
        message: `monoid ${name} combines ${monoid.fields.length} components, and there ${targets.length === 1 ? 'is 1 target' : `are ${targets.length} targets`}`,
        ...(monoid.span && { labels: [{ span: monoid.span, text: `${name} is declared here` }] }),
        expected: `(${monoid.fields.map((f) => f.name).join(', ')})`,
      })
    return monoid
  }
  const [first] = targets
  if (targets.length !== 1)
    return report('check/reducer-arity', span, {
      message: `the reducer ${name} takes a single target, and there are ${targets.length}`,
      hint: 'write a reduction for each target, or declare a monoid over the tuple',
    })
  if (!first) return null
  const logical = name === 'and' || name === 'or'
  if (logical !== (first.dtype === 'bool'))
    return report('check/reducer-type', span, {
      message: `the reducer ${name} does not work on ${first.dtype}`,
      expected: orList(BUILTIN_REDUCERS.filter((r) => (r === 'and' || r === 'or') !== logical)),
    })
  return builtinMonoid(name, first.dtype)
}

/** True if two targets of a tuple are the same element, which would keep the last value only; reports an error. */
function repeats(s: Ast.Assign | Ast.Reduce, targets: readonly Load[]): boolean {
  const keys = targets.map(keyOf)
  const repeated = keys.findIndex((key, k) => keys.indexOf(key) < k)
  if (repeated < 0) return false
  report('check/repeated-target', s.targets[repeated]!.span, {
    message: `${targets[repeated]!.buffer} is written twice at the same element by a tuple`,
    labels: [{ span: s.targets[keys.indexOf(keys[repeated]!)]!.span, text: 'the same element' }],
    expected: 'a different element for each value',
    hint: 'write the values in separate statements, or into separate buffers',
  })
  return true
}

function reduction(d: Declared, s: Ast.Reduce, scope: Scope): Stmt1 | null {
  const targets = s.targets.map((t) => target(d, scope, t))
  const reducer = reducerOf(d, s, targets)
  const builtin = isBuiltinReducer(s.reducer.name)
  if (reducer && !builtin)
    for (const [k, t] of targets.entries())
      if (t && t.dtype !== reducer.fields[k]!.dtype)
        return report('check/reducer-type', s.targets[k]!.span, {
          message: `component ${reducer.fields[k]!.name} of monoid ${reducer.name} is ${reducer.fields[k]!.dtype}, and ${t.buffer} is ${t.dtype}`,
          expected: `an element of type ${reducer.fields[k]!.dtype}`,
        })
  const values = s.values.map((v, k) => valueFor(d, scope, v, targets[k] ?? null, builtin))
  if (!reducer || targets.some((t) => !t) || values.some((v) => !v)) return null
  if (repeats(s, targets as Load[])) return null
  return reduce1({
    reducer,
    targets: targets as Load[],
    values: (values as Expr[]).map((v, k) => (builtin ? v : cast(v, reducer.fields[k]!.dtype))),
    span: s.span,
  })
}
