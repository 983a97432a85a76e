/**
 * Invariants of Stage III plans. They are checked once the launches exist; each later pass adds further invariants. A
 * violation is a bug of the compiler: `InternalError` with the location.
 */
import { InternalError, invariant } from '../ast/diagnostics/diagnostic.ts'
import { binaryType, type Expr } from '../ir/expressions/expr.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import { writesOf } from '../ir/statements/accesses.ts'
import type { Buffer, Kernel3, Launch } from '../ir/statements/loops.ts'
import { piecesOf } from '../ir/statements/tree.ts'
import { computeType, type ExprType, isFloat } from '../ir/values/dtype.ts'
import { isCompare } from '../ir/values/math.ts'
import { isPowerOfTwo } from '../ir/values/numeric.ts'
import { findDivergentBarrier } from './barrier-uniformity.ts'
import { checkOverParams, type Rules, type Scope, verifyStatements } from './statements.ts'

/** Passes after which further invariants hold. */
export const MILESTONES = [
  'buffer-flattening',
  'reduction-expansion',
  'loop-unrolling',
  'integer-division',
  'operand-casts',
  'search-expansion',
] as const
type Milestone = (typeof MILESTONES)[number]

/** True if the pass has run. */
type HasRun = (pass: Milestone) => boolean

/** Throws `InternalError` naming the first violated invariant. `hasRun`: true for passes that have run; default: all. */
export function verify3(plan: Kernel3, hasRun: HasRun = () => true): void {
  const params = new Map<string, ExprType>(
    plan.params.map((p) => [p.name, p.kind === 'size' ? 'index' : p.dtype]),
  )
  invariant(params.size === plan.params.length, `${plan.name}: a parameter occurs twice`)
  const buffers = new Map<string, Buffer>()
  for (const b of plan.buffers) {
    invariant(!buffers.has(b.name) && !params.has(b.name), `${plan.name}: ${b.name} occurs twice`)
    invariant(b.scope === 'global', `${b.name}: a plan's buffers are global`)
    invariant(b.shape.length === 1, `${b.name}: a plan's buffers have one dimension`)
    checkOverParams(b.shape[0]!, params, () => b.name)
    buffers.set(b.name, b)
  }
  const names = new Set<string>()
  for (const step of plan.steps) {
    if (step.kind === 'rounds') continue
    if (step.kind === 'clear') {
      invariant(buffers.has(step.buffer), `clear ${step.buffer}: no such buffer`)
      continue
    }
    invariant(!names.has(step.name), `${step.name}: two launches of one name`)
    names.add(step.name)
    if (isVerified(step, plan, hasRun)) continue
    verifyLaunch(step, params, buffers, hasRun)
    verified.set(step.body, { launch: step, plan, milestones: milestoneKey(hasRun) })
  }
}

interface Verified {
  readonly launch: Launch
  readonly plan: Kernel3
  readonly milestones: string
}

/** Verified launches by body; most passes leave most launches unchanged. */
const verified = new WeakMap<Launch['body'], Verified>()

/** True if nothing that the invariants of a launch depend on has changed since they were verified. */
function isVerified(l: Launch, plan: Kernel3, hasRun: HasRun): boolean {
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

const milestoneKey = (hasRun: HasRun): string => MILESTONES.filter(hasRun).join(' ')

function verifyLaunch(
  l: Launch,
  params: ReadonlyMap<string, ExprType>,
  buffers: ReadonlyMap<string, Buffer>,
  hasRun: HasRun,
): void {
  for (const e of l.grid) checkOverParams(e, params, () => `the grid of ${l.name}`)
  for (const n of l.block) invariant(Number.isInteger(n) && n >= 1, `${l.name}: a block of ${l.block}`)
  const boundNames = new Set([...params.keys(), ...buffers.keys()])
  const scope: Scope = { vars: new Map(params), buffers: new Map(buffers), boundNames }
  verifyStatements(l.body, scope, rulesOf(l.name, scope.buffers, hasRun))
  const written = writesOf(l.body)
  const problem = findDivergentBarrier(l.body, (b) => !written.has(b), l.block[0])
  if (problem) throw new InternalError(`${l.name}: ${problem}`)
}

/** The rules of Stage III in the launch `where`. `buffers`: the buffers in scope, which change with the statement. */
function rulesOf(where: string, buffers: ReadonlyMap<string, Buffer>, hasRun: HasRun): Rules {
  const isFlat = hasRun('buffer-flattening')
  const hasCasts = hasRun('operand-casts')
  const checkCast = (e: Expr, dtype: ExprType, description: string): void => {
    if (hasCasts) checkType(e, dtype, where, description)
  }
  return {
    where: () => where,
    target: (t, _, check) => {
      check(!isFlat || t.index.length === 1, `${t.buffer} has one dimension`)
      for (const e of t.index) checkCast(e, 'index', `an index of ${t.buffer}`)
    },
    node: (e, check) => {
      switch (e.kind) {
        case 'binary': {
          const isDivision = e.op === 'div' || e.op === 'mod'
          const isLowered = !isDivision || isFloat(e.dtype) || !hasRun('integer-division')
          check(isLowered, () => 'integer division is quo and rem by now')
          if (!hasCasts) break
          const operandType = isCompare(e.op) ? binaryType('add', e.a.dtype, e.b.dtype) : e.dtype
          checkCast(e.a, operandType, 'an operand')
          checkCast(e.b, operandType, 'an operand')
          break
        }
        case 'select':
          for (const x of [e.then, e.else]) checkCast(x, e.dtype, 'a branch')
          break
        case 'load':
          check(!isFlat || e.index.length === 1, () => `${e.buffer} has one dimension`)
          for (const x of e.index) checkCast(x, 'index', 'an index')
          break
        case 'search':
          check(!hasRun('search-expansion'), () => 'a search is a loop by now')
          break
        default:
      }
    },
    statement: (s, check) => {
      switch (s.kind) {
        case 'for':
          check(s.mode.kind !== 'bind', `${s.var} is still bound`)
          check(s.guards.length === 0, `${s.var} has guards`)
          return check(!hasRun('loop-unrolling') || s.mode.kind === 'serial', `${s.var} is ${s.mode.kind}`)
        case 'let': {
          const { lane } = s
          checkCast(s.value, s.dtype, s.name)
          const isLane =
            !lane || (isPowerOfTwo(lane.among) && isPowerOfTwo(lane.xor) && lane.xor < lane.among)
          return check(isLane, `${s.name} comes from no lane`)
        }
        case 'alloc':
          return check(!isFlat || s.buffer.shape.length === 1, `${s.buffer.name} is not flat`)
        case 'store':
          return checkCast(s.value, buffers.get(s.buffer)!.dtype, s.buffer)
        case 'reduce':
          check(!s.init, 'a reduction with its initialisation')
          check(!hasRun('reduction-expansion') || s.atomic, 'a reduction that is not atomic')
          check(!s.atomic || s.targets.length === 1, 'an atomic update of several elements')
          for (const t of s.lanes ? s.targets : [])
            check(
              buffers.get(t.buffer)?.scope === 'register',
              `lanes combine ${t.buffer}, which is not in registers`,
            )
          return
        case 'instr':
          for (const p of piecesOf(s)) {
            const hasIndex = p.kind !== 'value' && p.kind !== 'map' && p.kind !== 'name'
            check(!isFlat || !hasIndex || p.index.length === 1, `an operand of ${s.instr} is not flat`)
          }
          return
        case 'vector_load':
        case 'vector_store':
        case 'fill':
          return check(false, `${s.kind} inside of a launch`)
        default:
      }
    },
  }
}

/** Checks that `e` has the same register type as `dtype`. */
function checkType(e: Expr, dtype: ExprType, where: string, description: string): void {
  if (computeType(e.dtype) === computeType(dtype)) return
  throw new InternalError(`${where}: ${description}, ${printExpr(e)}, is ${e.dtype} where ${dtype} is needed`)
}
