/**
 * Invariants of Stage III plans. They are checked once the launches exist; each later pass adds further invariants. A
 * violation is a bug of the compiler: `InternalError` with the location.
 */
import { InternalError, invariant } from '../ast/diagnostic.ts'
import { isReadOnly, targetsOf, writesOf } from '../ir/accesses.ts'
import { computeType, type Dtype, isFloat } from '../ir/dtype.ts'
import { binaryType, type Expr } from '../ir/expr.ts'
import { freeVars, someExpr } from '../ir/expr-tree.ts'
import type { Buffer, Launch, Plan, Stmt } from '../ir/loops.ts'
import { isPowerOfTwo } from '../ir/numeric.ts'
import { isCompare } from '../ir/ops.ts'
import { printExpr } from '../ir/print-stage2.ts'
import { exprsOf, piecesOf } from '../ir/tree.ts'
import { uniformBarriers } from './barrier-uniformity.ts'
import { type Holds, verifyExpr } from './expression-invariants.ts'

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
  readonly vars: Map<string, Dtype>
  readonly buffers: Map<string, Buffer>
}

interface Context {
  /** True if the pass has run. */
  readonly reached: (pass: Milestone) => boolean
  readonly seen: Set<string>
  readonly where: string
}

/** Throws `InternalError` naming the first violated invariant. `reached`: whether a pass has run; all, if left out. */
export function verify3(plan: Plan, reached: Context['reached'] = () => true): void {
  const params = new Map<string, Dtype>(plan.params.map((p) => [p.name, p.kind === 'size' ? 'i32' : p.dtype]))
  invariant(params.size === plan.params.length, `${plan.name}: a parameter occurs twice`)
  const buffers = new Map<string, Buffer>()
  for (const b of plan.buffers) {
    invariant(!buffers.has(b.name) && !params.has(b.name), `${plan.name}: ${b.name} occurs twice`)
    invariant(b.scope === 'global', `${b.name}: a plan's buffers are global`)
    invariant(b.shape.length === 1, `${b.name}: a plan's buffers have one dimension`)
    overParams(b.shape[0]!, params, b.name)
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
    if (isVerified(step, plan, reached)) continue
    verifyLaunch(step, { vars: params, buffers }, reached)
    verified.set(step.body, { launch: step, plan, reached: milestones(reached) })
  }
}

interface Verified {
  readonly launch: Launch
  readonly plan: Plan
  readonly reached: string
}

/** Verified launches by body: most passes leave most launches unchanged. */
const verified = new WeakMap<Launch['body'], Verified>()

/** True if nothing that the invariants of a launch depend on has changed since they were verified. */
function isVerified(l: Launch, plan: Plan, reached: Context['reached']): boolean {
  const before = verified.get(l.body)
  return (
    before !== undefined &&
    before.plan.buffers === plan.buffers &&
    before.plan.params === plan.params &&
    before.launch.grid === l.grid &&
    before.launch.block === l.block &&
    before.reached === milestones(reached)
  )
}

const milestones = (reached: Context['reached']): string => MILESTONES.filter(reached).join(' ')

function verifyLaunch(l: Launch, scope: Scope, reached: Context['reached']): void {
  for (const e of l.grid) overParams(e, scope.vars, `the grid of ${l.name}`)
  for (const n of l.block) invariant(Number.isInteger(n) && n >= 1, `${l.name}: a block of ${l.block}`)
  const seen = new Set([...scope.vars.keys(), ...scope.buffers.keys()])
  verifyBody(l.body, scope, { reached, seen, where: l.name })
  const written = writesOf(l.body)
  const problem = uniformBarriers(l.body, (b) => !written.has(b), l.block[0])
  if (problem) throw new InternalError(`${l.name}: ${problem}`)
}

function verifyBody(body: readonly Stmt[], here: Scope, cx: Context): void {
  const bind = (name: string): void => {
    invariant(!cx.seen.has(name), () => `${cx.where}: ${name} is bound twice`)
    cx.seen.add(name)
  }
  const own: string[] = []
  // What holds of a node here holds for the rest of the body, where only more is bound.
  const known = new Set<Expr>()
  for (const s of body) {
    for (const e of s.kind === 'for' ? [s.extent] : exprsOf(s))
      verifyExpr(e, here, () => cx.where, known, nodesOf(cx))
    for (const t of targetsOf(s)) {
      const b = here.buffers.get(t.buffer)
      invariant(b, () => `${cx.where}: a write to ${t.buffer}, which is not here`)
      invariant(!isReadOnly(b), () => `${cx.where}: ${t.buffer} is read only`)
      invariant(
        !cx.reached('buffer-flattening') || t.index.length === 1,
        () => `${cx.where}: ${t.buffer} has one dimension`,
      )
      if (cx.reached('operand-casts')) for (const e of t.index) typed(e, 'i32', cx, `an index of ${t.buffer}`)
    }
    switch (s.kind) {
      case 'for':
        bind(s.var)
        invariant(s.mode.kind !== 'bind', `${cx.where}: ${s.var} is still bound`)
        invariant(s.guards.length === 0, `${cx.where}: ${s.var} has guards`)
        invariant(
          !cx.reached('loop-unrolling') || s.mode.kind === 'serial',
          `${cx.where}: ${s.var} is ${s.mode.kind}`,
        )
        invariant(s.extent.dtype === 'i32', `${cx.where}: the extent of ${s.var} is ${s.extent.dtype}`)
        here.vars.set(s.var, 'i32')
        verifyBody(s.body, here, cx)
        here.vars.delete(s.var)
        break
      case 'while':
        invariant(s.cond.dtype === 'bool', `${cx.where}: a condition of type ${s.cond.dtype}`)
        verifyBody(s.body, here, cx)
        break
      case 'if':
        invariant(s.cond.dtype === 'bool', `${cx.where}: a condition of type ${s.cond.dtype}`)
        verifyBody(s.then, here, cx)
        verifyBody(s.else, here, cx)
        break
      case 'let':
        bind(s.name)
        if (cx.reached('operand-casts')) typed(s.value, s.dtype, cx, s.name)
        if (s.lane)
          invariant(
            isPowerOfTwo(s.lane.among) && isPowerOfTwo(s.lane.xor) && s.lane.xor < s.lane.among,
            `${cx.where}: ${s.name} comes from no lane`,
          )
        here.vars.set(s.name, s.dtype)
        own.push(s.name)
        break
      case 'alloc':
        bind(s.buffer.name)
        invariant(s.buffer.scope !== 'global', `${cx.where}: ${s.buffer.name} is allocated in global memory`)
        for (const e of s.buffer.shape)
          invariant(e.kind === 'const' && e.value >= 1, `${cx.where}: ${s.buffer.name} has no constant shape`)
        invariant(
          !cx.reached('buffer-flattening') || s.buffer.shape.length === 1,
          `${cx.where}: ${s.buffer.name} is not flat`,
        )
        here.buffers.set(s.buffer.name, s.buffer)
        own.push(s.buffer.name)
        break
      case 'store':
        if (cx.reached('operand-casts')) typed(s.value, here.buffers.get(s.buffer)!.dtype, cx, s.buffer)
        break
      case 'reduce':
        invariant(!s.init, `${cx.where}: a reduction with its initialisation`)
        invariant(
          !cx.reached('reduction-expansion') || s.atomic,
          `${cx.where}: a reduction that is not atomic`,
        )
        invariant(!s.atomic || s.targets.length === 1, `${cx.where}: an atomic update of several elements`)
        if (s.lanes)
          for (const t of s.targets)
            invariant(
              here.buffers.get(t.buffer)?.scope === 'register',
              `${cx.where}: lanes combine ${t.buffer}, which is not in registers`,
            )
        break
      case 'barrier':
        break
      case 'instr':
        for (const p of piecesOf(s)) {
          if (p.kind === 'value') continue
          invariant(here.buffers.has(p.buffer), `${cx.where}: ${s.instr} has no buffer ${p.buffer} here`)
          const flat = p.kind === 'map' || p.kind === 'name' || p.index.length === 1
          invariant(!cx.reached('buffer-flattening') || flat, `${cx.where}: ${p.buffer} is not flat`)
        }
        break
      case 'vector_load':
      case 'vector_store':
        throw new InternalError(`${cx.where}: vectors come with printing`)
      case 'fill':
        throw new InternalError(`${cx.where}: a fill inside of a launch`)
    }
  }
  for (const name of own) if (!here.vars.delete(name)) here.buffers.delete(name)
}

/** Additional invariants of expression nodes in Stage III. */
const nodesOf =
  (cx: Context) =>
  (e: Expr, holds: Holds): void => {
    const casts = cx.reached('operand-casts')
    switch (e.kind) {
      case 'binary': {
        const divides = e.op === 'div' || e.op === 'mod'
        holds(
          !divides || isFloat(e.dtype) || !cx.reached('integer-division'),
          () => 'integer division is quo and rem by now',
        )
        if (!casts) break
        const operands = isCompare(e.op) ? binaryType('add', e.a.dtype, e.b.dtype) : e.dtype
        typed(e.a, operands, cx, 'an operand')
        typed(e.b, operands, cx, 'an operand')
        break
      }
      case 'select':
        if (casts) for (const x of [e.then, e.else]) typed(x, e.dtype, cx, 'a branch')
        break
      case 'load':
        holds(!cx.reached('buffer-flattening') || e.index.length === 1, () => `${e.buffer} has one dimension`)
        if (casts) for (const x of e.index) typed(x, 'i32', cx, 'an index')
        break
      case 'search':
        holds(!cx.reached('search-expansion'), () => 'a search is a loop by now')
        break
      default:
    }
  }

/** `e` computes in the registers' type of `dtype`. */
function typed(e: Expr, dtype: Dtype, cx: Context, what: string): void {
  if (computeType(e.dtype) === computeType(dtype)) return
  throw new InternalError(`${cx.where}: ${what}, ${printExpr(e)}, is ${e.dtype} where ${dtype} is needed`)
}

function overParams(e: Expr, params: ReadonlyMap<string, Dtype>, what: string): void {
  for (const v of freeVars(e)) invariant(params.has(v), () => `${what}: ${printExpr(e)} depends on ${v}`)
  const other = someExpr(e, (x) => x.kind === 'load' || x.kind === 'search' || x.kind === 'builtin')
  invariant(!other, () => `${what}: ${printExpr(e)}`)
}
