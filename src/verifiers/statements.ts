/** Scopes of statements, and the invariants that Stages II and III share. Each stage adds further rules. */
import { InternalError, invariant } from '../ast/diagnostics/diagnostic.ts'
import type { Expr, Load } from '../ir/expressions/expr.ts'
import { freeVars, someExpr, walkExpr } from '../ir/expressions/expr-tree.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import { isReadOnly, targetsOf } from '../ir/statements/accesses.ts'
import { boundBy } from '../ir/statements/definitions.ts'
import type { Buffer, For, Stmt, Store } from '../ir/statements/loops.ts'
import { type Body, bodiesOf, exprsOf, piecesOf } from '../ir/statements/tree.ts'
import { type ExprType, elementType, isWord } from '../ir/values/dtype.ts'
import { MATH } from '../ir/values/math.ts'

/** Throws `InternalError` with the location unless the condition holds. */
export type Check = (holds: boolean, problem: string | (() => string)) => void

const textOf = (problem: string | (() => string)): string =>
  typeof problem === 'string' ? problem : problem()

/** Variables and buffers in scope. Names are unique, so the end of a body removes the bindings of the body. */
export interface Scope {
  readonly vars: Map<string, ExprType>
  readonly buffers: Map<string, Buffer>
  /** Every name bound so far: variables and buffers have a common namespace. */
  readonly boundNames: Set<string>
}

/** The invariants of a stage; `path`: the loops around. */
export interface Rules {
  readonly where: (s: Stmt) => string
  /** The variable of a loop is in scope. */
  readonly statement: (s: Stmt, check: Check, path: readonly For[]) => void
  readonly target: (t: Load | Store, b: Buffer, check: Check) => void
  readonly node: (e: Expr, check: Check, path: readonly For[]) => void
}

export function verifyStatements(body: Body, scope: Scope, rules: Rules, path: readonly For[] = []): void {
  const declared: string[] = []
  // Later statements of the body have the same names in scope and more, so a verified node stays valid.
  const verified = new Set<Expr>()
  for (const s of body) {
    const where = (): string => rules.where(s)
    const check: Check = (holds, problem) => invariant(holds, () => `${where()}: ${textOf(problem)}`)
    const verify = (exprs: readonly Expr[], nodes: Set<Expr>, around: readonly For[]): void => {
      for (const e of exprs)
        verifyExpr(e, scope, where, nodes, (x, checkNode) => rules.node(x, checkNode, around))
    }
    verify(s.kind === 'for' ? [s.extent] : exprsOf(s), verified, path)
    for (const t of targetsOf(s)) {
      const b = scope.buffers.get(t.buffer)
      invariant(b, () => `${where()}: no buffer ${t.buffer} here`)
      check(!isReadOnly(b), `${t.buffer} is read only`)
      rules.target(t, b, check)
    }
    for (const name of boundBy(s)) {
      check(!scope.boundNames.has(name), `${name} is bound twice`)
      scope.boundNames.add(name)
    }
    const inside = s.kind === 'for' ? [...path, s] : path
    if (s.kind === 'for') {
      check(isWord(s.extent.dtype), `the extent of ${s.var} is ${s.extent.dtype}`)
      scope.vars.set(s.var, 'index')
      verify(s.guards, new Set(), inside)
    } else if (s.kind === 'if' || s.kind === 'while')
      check(s.cond.dtype === 'bool', `the condition is ${s.cond.dtype}`)
    else if (s.kind === 'alloc') {
      const { name, scope: memory, shape } = s.buffer
      check(memory !== 'global', `${name} is allocated in global memory`)
      const isConstant = shape.every((e) => e.kind === 'const' && e.value >= 1)
      check(isConstant, `the shape of ${name} is not constant`)
    } else if (s.kind === 'instr')
      for (const p of piecesOf(s))
        check(p.kind === 'value' || scope.buffers.has(p.buffer), `${s.instr} has an operand that is not here`)
    rules.statement(s, check, path)
    for (const b of bodiesOf(s)) verifyStatements(b, scope, rules, inside)
    if (s.kind === 'for') scope.vars.delete(s.var)
    if (s.kind === 'alloc') scope.buffers.set(s.buffer.name, s.buffer)
    if (s.kind === 'let') scope.vars.set(s.name, s.dtype)
    if (s.kind !== 'for') declared.push(...boundBy(s))
  }
  for (const name of declared) if (!scope.vars.delete(name)) scope.buffers.delete(name)
}

/** Verifies nodes that are not in `verified`, and adds them; `checkNode` checks the stage's additional invariants. */
function verifyExpr(
  e: Expr,
  scope: Scope,
  where: () => string,
  verified: Set<Expr>,
  checkNode: (e: Expr, check: Check) => void,
): void {
  const verify = (x: Expr): void => {
    const check: Check = (holds, problem) => {
      if (!holds) throw new InternalError(`${where()}: ${printExpr(x)}: ${textOf(problem)}`)
    }
    verifyNode(x, scope, check)
    checkNode(x, check)
  }
  walkExpr(e, verify, verified)
}

function verifyNode(e: Expr, { vars, buffers }: Scope, check: Check): void {
  switch (e.kind) {
    case 'var':
      check(vars.has(e.name), () => 'not bound here')
      check(vars.get(e.name) === e.dtype, () => `is ${vars.get(e.name)}, not ${e.dtype}`)
      break
    case 'call':
      check(e.args.length === MATH[e.fn].arity, () => 'wrong number of arguments')
      break
    case 'select':
      check(e.cond.dtype === 'bool', () => `the condition is ${e.cond.dtype}`)
      break
    case 'search':
      check(buffers.has(e.buffer), () => `no buffer ${e.buffer} here`)
      break
    case 'load': {
      const buffer = buffers.get(e.buffer)
      const type = buffer && elementType(buffer)
      check(type !== undefined, () => `no buffer ${e.buffer} here`)
      check(
        type === e.dtype || (type === 'i32' && e.dtype === 'index'),
        () => `${e.buffer} is ${type}, not ${e.dtype}`,
      )
    }
  }
}

/** Checks that an expression depends on parameters only. */
export function checkOverParams(e: Expr, params: ReadonlyMap<string, ExprType>, where: () => string): void {
  for (const v of freeVars(e))
    invariant(params.has(v), () => `${where()}: ${printExpr(e)} depends on ${v}, not only on parameters`)
  const readsState = someExpr(e, (x) => x.kind === 'load' || x.kind === 'search' || x.kind === 'builtin')
  invariant(!readsState, () => `${where()}: ${printExpr(e)} reads memory or hardware indices`)
}
