/** Invariants of Stage I statements and their expressions. */
import { InternalError, unreachable } from '../ast/diagnostics/diagnostic.ts'
import { type Axis, countedBy, isAttached, isFused, isStored, parentOf } from '../ir/coordinates/axis.ts'
import { readByEdge } from '../ir/coordinates/rounds.ts'
import type { Access, Buffer1, Iteration, Reduce1, Stmt1 } from '../ir/coordinates/stage1.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { walkExpr } from '../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../ir/print/print-stage1.ts'
import { type ExprType, isWord, scalarType } from '../ir/values/dtype.ts'
import { isCompare } from '../ir/values/math.ts'
import { isBuiltinReducer, type Monoid } from '../ir/values/monoid.ts'

export function check(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InternalError(`Stage I: ${message}`)
}

/** Variables in scope with their types, and the axes that are iterated (an attached axis also opens its base). */
export interface Scope {
  readonly types: ReadonlyMap<string, ExprType>
  readonly open: ReadonlySet<string>
}

/** Returns the function that verifies statements in a scope. */
export function statementVerifier(
  axes: ReadonlyMap<string, Axis>,
  buffers: ReadonlyMap<string, Buffer1>,
  declared: ReadonlySet<string>,
) {
  const verifyBody = (statements: readonly Stmt1[], outer: Scope): void => {
    let scope = outer
    for (const s of statements) {
      switch (s.kind) {
        case 'iterate':
          iteration(s, scope)
          break
        case 'let':
          expr(s.value, scope)
          check(!declared.has(s.name) && !scope.types.has(s.name), `let ${s.name} hides something`)
          scope = { ...scope, types: new Map(scope.types).set(s.name, s.value.dtype) }
          break
        case 'if':
          expr(s.cond, scope)
          check(s.cond.dtype === 'bool', `condition ${printExpr1(s.cond)} is ${s.cond.dtype}`)
          verifyBody(s.then, scope)
          verifyBody(s.else, scope)
          break
        case 'assign':
          targets(s.targets, s.values, scope)
          s.values.forEach((v, k) => {
            const t = s.targets[k]!
            check(v.dtype === t.dtype, `${printExpr1(t)} is ${t.dtype} and is assigned ${v.dtype}`)
          })
          break
        case 'reduce':
          targets(s.targets, s.values, scope)
          reduce(s)
          break
        case 'rounds':
          check(outer.open.size === 0, `rounds ${s.name} are in an iteration`)
          for (const b of readByEdge(s)) check(buffers.has(b), `${b} of rounds ${s.name} is not a buffer`)
          break
        default:
          unreachable(s)
      }
    }
  }
  const iteration = (s: Iteration, outer: Scope): void => {
    const types = new Map(outer.types)
    const open = new Set(outer.open)
    for (const it of s.iters) {
      const a = axes.get(it.axis)
      check(a, `iterator ${it.name} is over ${it.axis}, which is no axis`)
      const parent = isStored(a) ? parentOf(a) : isAttached(a) ? a.parent : null
      check(
        parent === null || open.has(parent),
        `${it.name} in ${s.name} is iterated outside its parent ${parent}`,
      )
      const names = isFused(a) ? a.members : [it.name]
      for (const name of names) {
        check(!types.has(name), `iterator ${name} of ${s.name} hides something`)
        check(
          name === it.axis || isFused(a) || isViewName(a, name) || !declared.has(name),
          `iterator ${name} hides something`,
        )
        types.set(name, 'index')
      }
      for (const iterator of countedBy(a))
        check(types.has(iterator), `${it.name} of ${s.name} ends by ${iterator}, which is not in sight`)
      for (const name of isFused(a) ? a.members : [it.axis]) open.add(name)
      if (isAttached(a)) open.add(a.base)
    }
    const scope = { types, open }
    for (const w of s.where) {
      expr(w, scope)
      check(w.dtype === 'bool', `where ${printExpr1(w)} is ${w.dtype}`)
    }
    verifyBody(s.body, scope)
  }
  const targets = (targets: readonly Access[], values: readonly Expr[], scope: Scope): void => {
    check(
      targets.length === values.length && targets.length > 0,
      `${targets.length} targets, ${values.length} values`,
    )
    for (const t of targets) {
      expr(t, scope)
      check(buffers.get(t.buffer)!.role !== 'in', `the input ${t.buffer} is written`)
    }
    for (const v of values) expr(v, scope)
  }
  const reduce = (s: Reduce1): void => {
    verifyMonoid(s.reducer)
    check(
      s.reducer.fields.length === s.targets.length,
      `${s.reducer.name} does not take ${s.targets.length} targets`,
    )
    const builtin = isBuiltinReducer(s.reducer.name)
    s.targets.forEach((t, k) => {
      const { dtype } = s.reducer.fields[k]!
      const value = s.values[k]!.dtype
      check(t.dtype === dtype, `${printExpr1(t)} is ${t.dtype} and is reduced as ${dtype}`)
      const accumulated = builtin ? buffers.get(t.buffer)!.accumulate : dtype
      check(value === dtype || value === accumulated, `${printExpr1(t)} is reduced with ${value}`)
    })
  }
  const expr = (e: Expr, scope: Scope): void => {
    walkExpr(e, (x) => {
      switch (x.kind) {
        case 'var': {
          const dtype = scope.types.get(x.name)
          check(dtype, `${x.name} is not in sight`)
          check(dtype === x.dtype, `${x.name} is ${dtype} and used as ${x.dtype}`)
          break
        }
        case 'load': {
          const b = buffers.get(x.buffer)
          check(b, `there is no buffer ${x.buffer}`)
          check(b.dtype === scalarType(x.dtype), `${b.name} is ${b.dtype} and used as ${x.dtype}`)
          check(b.axes.length === x.index.length, `${printExpr1(x)} has ${x.index.length} indices`)
          for (const i of x.index) check(isWord(i.dtype), `index ${printExpr1(i)} is ${i.dtype}`)
          break
        }
        default:
          verifyNode(x)
      }
    })
  }
  return verifyBody
}

function verifyNode(x: Expr): void {
  switch (x.kind) {
    case 'builtin':
    case 'search':
      check(false, `${x.kind} in ${printExpr1(x)}`)
      break
    case 'binary': {
      check(
        scalarType(x.a.dtype) === scalarType(x.b.dtype),
        `operands of ${printExpr1(x)} are ${x.a.dtype} and ${x.b.dtype}`,
      )
      const logical = x.op === 'and' || x.op === 'or'
      check(!logical || x.a.dtype === 'bool', `operands of ${printExpr1(x)} are ${x.a.dtype}`)
      check(!(isCompare(x.op) || logical) || x.dtype === 'bool', `${printExpr1(x)} is ${x.dtype}`)
      check(x.op !== 'quo' && x.op !== 'rem', `${x.op} in ${printExpr1(x)}`)
      break
    }
    case 'select':
      check(x.cond.dtype === 'bool', `the condition of ${printExpr1(x)} is ${x.cond.dtype}`)
      check(
        [x.then, x.else].every((e) => scalarType(e.dtype) === scalarType(x.dtype)),
        `branches of ${printExpr1(x)} differ in type`,
      )
      break
    case 'unary':
      check((x.op === 'not') === (x.x.dtype === 'bool'), `the operand of ${printExpr1(x)} is ${x.x.dtype}`)
      break
    default:
  }
}

function verifyMonoid(m: Monoid): void {
  const n = m.fields.length
  const sizesMatch = [m.identity, m.left, m.right, m.result].every((list) => list.length === n)
  check(sizesMatch, `monoid ${m.name} does not have ${n} components everywhere`)
  const operandTypes = new Map([...m.left, ...m.right].map((v) => [v.name, v.dtype]))
  check(operandTypes.size === 2 * n, `the operands of monoid ${m.name} share names`)
  for (const e of [...m.identity, ...m.result])
    walkExpr(e, (x) => {
      check(
        x.kind !== 'var' || operandTypes.get(x.name) === x.dtype,
        `monoid ${m.name} mentions ${printExpr1(x)}`,
      )
      check(x.kind !== 'load', `monoid ${m.name} reads memory`)
    })
}

/** True if `name` is the base of the attached axis `a`: its iterator may have this name. */
const isViewName = (a: Axis, name: string): boolean => isAttached(a) && a.base === name
