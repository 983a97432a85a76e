/**
 * Invariants of Stage III plans. They are checked once the launches exist; each later pass adds further invariants. A
 * violation is a bug of the compiler: `InternalError` with the location.
 */
import { InternalError, invariant } from '../ast/diagnostics/diagnostic.ts'
import { binaryType, type Expr } from '../ir/expressions/expr.ts'
import { freeVars, someExpr } from '../ir/expressions/expr-tree.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import { isReadOnly, targetsOf, writesOf } from '../ir/statements/accesses.ts'
import type { Buffer, Launch, Plan, Stmt } from '../ir/statements/loops.ts'
import { exprsOf, piecesOf } from '../ir/statements/tree.ts'
import { computeType, type ExprType, isFloat, isWord } from '../ir/values/dtype.ts'
import { isCompare } from '../ir/values/math.ts'
import { isPowerOfTwo } from '../ir/values/numeric.ts'
import { findDivergentBarrier } from './barrier-uniformity.ts'
import { type Check, verifyExpr } from './expression-invariants.ts'

/** Passes after which further invariants hold. */
export const MILESTONES = [
  'buffer-flattening',
  'reduction-expansion',
  'loop-unrolling',
  'integer-division',
  'operand-casts',
  'search-expansion',
] as const
export type Milestone = (typeof MILESTONES)[number]

/** Variables and buffers in scope. Names are unique in a launch, so a body removes its own bindings at its end. */
interface Scope {
  readonly vars: Map<string, ExprType>
  readonly buffers: Map<string, Buffer>
}

interface Context {
  /** True if the pass has run. */
  readonly hasRun: (pass: Milestone) => boolean
  readonly boundNames: Set<string>
  readonly where: string
}

/** Throws `InternalError` naming the first violated invariant. `hasRun`: true for passes that have run; default: all. */
export function verify3(plan: Plan, hasRun: Context['hasRun'] = () => true): void {
  const params = new Map<string, ExprType>(
    plan.params.map((p) => [p.name, p.kind === 'size' ? 'index' : p.dtype]),
  )
  invariant(params.size === plan.params.length, `${plan.name}: a parameter occurs twice`)
  const buffers = new Map<string, Buffer>()
  for (const b of plan.buffers) {
    invariant(!buffers.has(b.name) && !params.has(b.name), `${plan.name}: ${b.name} occurs twice`)
    invariant(b.scope === 'global', `${b.name}: a plan's buffers are global`)
    invariant(b.shape.length === 1, `${b.name}: a plan's buffers have one dimension`)
    checkOverParams(b.shape[0]!, params, b.name)
    buffers.set(b.name, b)
  }
  const names = new Set<string>()
  for (const step of plan.steps) {
    if (step.kind === 'clear') {
      invariant(buffers.has(step.buffer), `clear ${step.buffer}: no such buffer`)
      continue
    }
    invariant(!names.has(step.name), `${step.name}: two launches of one name`)
    names.add(step.name)
    if (isVerified(step, plan, hasRun)) continue
    verifyLaunch(step, { vars: params, buffers }, hasRun)
    verified.set(step.body, { launch: step, plan, milestones: milestoneKey(hasRun) })
  }
}

interface Verified {
  readonly launch: Launch
  readonly plan: Plan
  readonly milestones: string
}

/** Verified launches by body; most passes leave most launches unchanged. */
const verified = new WeakMap<Launch['body'], Verified>()

/** True if nothing that the invariants of a launch depend on has changed since they were verified. */
function isVerified(l: Launch, plan: Plan, hasRun: Context['hasRun']): boolean {
  const previous = verified.get(l.body)
  return (
    previous !== undefined &&
    previous.plan.buffers === plan.buffers &&
    previous.plan.params === plan.params &&
    previous.launch.grid === l.grid &&
    previous.launch.block === l.block &&
    previous.milestones === milestoneKey(hasRun)
  )
}

const milestoneKey = (hasRun: Context['hasRun']): string => MILESTONES.filter(hasRun).join(' ')

function verifyLaunch(l: Launch, scope: Scope, hasRun: Context['hasRun']): void {
  for (const e of l.grid) checkOverParams(e, scope.vars, `the grid of ${l.name}`)
  for (const n of l.block) invariant(Number.isInteger(n) && n >= 1, `${l.name}: a block of ${l.block}`)
  const boundNames = new Set([...scope.vars.keys(), ...scope.buffers.keys()])
  verifyBody(l.body, scope, { hasRun, boundNames, where: l.name })
  const written = writesOf(l.body)
  const problem = findDivergentBarrier(l.body, (b) => !written.has(b), l.block[0])
  if (problem) throw new InternalError(`${l.name}: ${problem}`)
}

function verifyBody(body: readonly Stmt[], scope: Scope, cx: Context): void {
  const check = (holds: boolean, problem: string): void => invariant(holds, () => `${cx.where}: ${problem}`)
  const bind = (name: string): void => {
    check(!cx.boundNames.has(name), `${name} is bound twice`)
    cx.boundNames.add(name)
  }
  const declared: string[] = []
  // Later statements of the body have the same names in scope and more, so a verified node stays valid.
  const verifiedNodes = new Set<Expr>()
  for (const s of body) {
    for (const e of s.kind === 'for' ? [s.extent] : exprsOf(s))
      verifyExpr(e, scope, () => cx.where, verifiedNodes, nodeInvariants(cx))
    for (const t of targetsOf(s)) {
      const b = scope.buffers.get(t.buffer)
      invariant(b, () => `${cx.where}: a write to ${t.buffer}, which is not here`)
      check(!isReadOnly(b), `${t.buffer} is read only`)
      check(!cx.hasRun('buffer-flattening') || t.index.length === 1, `${t.buffer} has one dimension`)
      if (cx.hasRun('operand-casts'))
        for (const e of t.index) checkType(e, 'index', cx, `an index of ${t.buffer}`)
    }
    switch (s.kind) {
      case 'for':
        bind(s.var)
        check(s.mode.kind !== 'bind', `${s.var} is still bound`)
        check(s.guards.length === 0, `${s.var} has guards`)
        check(!cx.hasRun('loop-unrolling') || s.mode.kind === 'serial', `${s.var} is ${s.mode.kind}`)
        check(isWord(s.extent.dtype), `the extent of ${s.var} is ${s.extent.dtype}`)
        scope.vars.set(s.var, 'index')
        verifyBody(s.body, scope, cx)
        scope.vars.delete(s.var)
        break
      case 'while':
        check(s.cond.dtype === 'bool', `a condition of type ${s.cond.dtype}`)
        verifyBody(s.body, scope, cx)
        break
      case 'if':
        check(s.cond.dtype === 'bool', `a condition of type ${s.cond.dtype}`)
        verifyBody(s.then, scope, cx)
        verifyBody(s.else, scope, cx)
        break
      case 'let':
        bind(s.name)
        if (cx.hasRun('operand-casts')) checkType(s.value, s.dtype, cx, s.name)
        if (s.lane)
          check(
            isPowerOfTwo(s.lane.among) && isPowerOfTwo(s.lane.xor) && s.lane.xor < s.lane.among,
            `${s.name} comes from no lane`,
          )
        scope.vars.set(s.name, s.dtype)
        declared.push(s.name)
        break
      case 'alloc':
        bind(s.buffer.name)
        check(s.buffer.scope !== 'global', `${s.buffer.name} is allocated in global memory`)
        for (const e of s.buffer.shape)
          check(e.kind === 'const' && e.value >= 1, `${s.buffer.name} has no constant shape`)
        check(!cx.hasRun('buffer-flattening') || s.buffer.shape.length === 1, `${s.buffer.name} is not flat`)
        scope.buffers.set(s.buffer.name, s.buffer)
        declared.push(s.buffer.name)
        break
      case 'store':
        if (cx.hasRun('operand-casts')) checkType(s.value, scope.buffers.get(s.buffer)!.dtype, cx, s.buffer)
        break
      case 'reduce':
        check(!s.init, 'a reduction with its initialisation')
        check(!cx.hasRun('reduction-expansion') || s.atomic, 'a reduction that is not atomic')
        check(!s.atomic || s.targets.length === 1, 'an atomic update of several elements')
        if (s.lanes)
          for (const t of s.targets)
            check(
              scope.buffers.get(t.buffer)?.scope === 'register',
              `lanes combine ${t.buffer}, which is not in registers`,
            )
        break
      case 'barrier':
        break
      case 'instr':
        for (const p of piecesOf(s)) {
          if (p.kind === 'value') continue
          check(scope.buffers.has(p.buffer), `${s.instr} has no buffer ${p.buffer} here`)
          const isFlat = p.kind === 'map' || p.kind === 'name' || p.index.length === 1
          check(!cx.hasRun('buffer-flattening') || isFlat, `${p.buffer} is not flat`)
        }
        break
      case 'vector_load':
      case 'vector_store':
        throw new InternalError(`${cx.where}: vectors come with printing`)
      case 'fill':
        throw new InternalError(`${cx.where}: a fill inside of a launch`)
    }
  }
  for (const name of declared) if (!scope.vars.delete(name)) scope.buffers.delete(name)
}

/** Additional invariants of expression nodes in Stage III. */
const nodeInvariants =
  (cx: Context) =>
  (e: Expr, check: Check): void => {
    const hasCasts = cx.hasRun('operand-casts')
    switch (e.kind) {
      case 'binary': {
        const isDivision = e.op === 'div' || e.op === 'mod'
        check(
          !isDivision || isFloat(e.dtype) || !cx.hasRun('integer-division'),
          () => 'integer division is quo and rem by now',
        )
        if (!hasCasts) break
        const operandType = isCompare(e.op) ? binaryType('add', e.a.dtype, e.b.dtype) : e.dtype
        checkType(e.a, operandType, cx, 'an operand')
        checkType(e.b, operandType, cx, 'an operand')
        break
      }
      case 'select':
        if (hasCasts) for (const x of [e.then, e.else]) checkType(x, e.dtype, cx, 'a branch')
        break
      case 'load':
        check(!cx.hasRun('buffer-flattening') || e.index.length === 1, () => `${e.buffer} has one dimension`)
        if (hasCasts) for (const x of e.index) checkType(x, 'index', cx, 'an index')
        break
      case 'search':
        check(!cx.hasRun('search-expansion'), () => 'a search is a loop by now')
        break
      default:
    }
  }

/** Checks that `e` has the same register type as `dtype`. */
function checkType(e: Expr, dtype: ExprType, cx: Context, description: string): void {
  if (computeType(e.dtype) === computeType(dtype)) return
  throw new InternalError(
    `${cx.where}: ${description}, ${printExpr(e)}, is ${e.dtype} where ${dtype} is needed`,
  )
}

function checkOverParams(e: Expr, params: ReadonlyMap<string, ExprType>, where: string): void {
  for (const v of freeVars(e)) invariant(params.has(v), () => `${where}: ${printExpr(e)} depends on ${v}`)
  const forbidden = someExpr(e, (x) => x.kind === 'load' || x.kind === 'search' || x.kind === 'builtin')
  invariant(!forbidden, () => `${where}: ${printExpr(e)}`)
}
