/**
 * If-conversion (predication) of divergent control flow around barriers. Barriers, cooperative loops and lane exchanges are moved out of
 * conditions that may differ between the threads of a block, so that every thread reaches them.
 */

import { failAt, failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { all, binary, conjuncts, type Expr, int, load, select, variable } from '../../ir/expressions/expr.ts'
import { levelOf } from '../../ir/instructions/hardware-axes.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { alloc, barrier, define, local, store, when } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, rewriteStmts, someStmt, stmt } from '../../ir/statements/tree.ts'
import { FIRST_THREAD } from '../instructions/instruction-selection.ts'
import type { Varying } from './divergence-analysis.ts'

/** Returns true if the statement contains a cooperative loop, in which all threads of the block must participate. */
export const isCooperative = (s: Stmt): boolean =>
  someStmt([s], (x) => x.kind === 'for' && x.cooperative === true)

/** Places statements under conditions, according to the divergence analysis. */
export function conditionsUnder(varying: Varying, names: Names) {
  const divergent = (e: Expr): boolean => varying.differs(e)
  /** Returns true if `e` may differ between threads of one row of the block. */
  const splitsRows = (e: Expr): boolean => varying.differs(e, 'thread.x')
  /** Returns `body` under all the conditions, with barriers outside of divergent ones. */
  const guard = (conditions: readonly Expr[], body: Body): Body =>
    conditions.length === 0 ? body : choose(all(conditions), body, [])
  /** Returns `if cond { then } else { otherwise }`, with barriers outside of the condition if it is divergent. */
  const choose = (cond: Expr, then: Body, otherwise: Body): Body => {
    const synchronize = needsAll(then, cond) || needsAll(otherwise, cond)
    if (!synchronize || !divergent(cond)) {
      const agreed = synchronize ? agreedOn(cond, [...then, ...otherwise]) : { before: [], value: cond }
      return [...agreed.before, when(agreed.value, then, otherwise)]
    }
    if (otherwise.length > 0) return [...predicate(then, cond), ...predicate(otherwise, negated(cond))]
    if (blockMeets(then) || then.some((s) => rowMeets(s))) return predicate(then, cond)
    // Rows may run loops a different number of times: conditions that are uniform in a row stay around these loops.
    const terms = conjuncts(cond)
    const row = terms.filter((c) => !splitsRows(c))
    const inner = predicate(then, all(terms.filter((c) => splitsRows(c))))
    return row.length > 0 ? [when(all(row), inner)] : inner
  }
  /**
   * Makes a uniform condition or trip count provably uniform. If it reads memory that the launch writes and `body` contains barriers, one
   * thread reads the value and broadcasts it through shared memory. WGSL requires this form; uniformity otherwise follows only from the
   * placement of barriers.
   */
  const agreedOn = (value: Expr, body: Body): { readonly before: Body; readonly value: Expr } => {
    if (!blockMeets(body) || !varying.of(value).has('memory')) return { before: [], value }
    const broadcast = names.fresh('agreed')
    const slot = local(names.fresh('agreed_shared'), 'i32', [], 'shared')
    const truth = value.dtype === 'bool'
    // Conjuncts that do not read written memory stay visible, because they prove that indices are in range.
    const readFree = truth ? conjuncts(value).filter((e) => !varying.of(e).has('memory')) : []
    const word = truth ? select(value, int(1), int(0)) : value
    return {
      before: [
        alloc(slot),
        barrier(),
        when(FIRST_THREAD, [store(slot.name, [int(0)], word)]),
        barrier(),
        define(broadcast, load(slot.name, [int(0)]), { uniform: true }),
      ],
      value: truth ? all([...readFree, binary('ne', variable(broadcast), int(0))]) : variable(broadcast),
    }
  }
  /** Returns true if `body` synchronises threads, of the block or of one row, that `cond` would separate. */
  const needsAll = (body: Body, cond: Expr): boolean =>
    blockMeets(body) || body.some((s) => rowMeets(s)) || (splitsRows(cond) && anyRowMeets(body))
  /** Returns true if `s` synchronises threads of a row. A loop whose trip count is divergent synchronises each row by itself. */
  const rowMeets = (s: Stmt): boolean => {
    if (s.kind === 'reduce' || s.kind === 'barrier') return s.lanes !== undefined
    if (s.kind === 'for' && s.cooperative) return true
    return !(s.kind === 'for' && divergent(s.extent)) && bodiesOf(s).some((b) => b.some((x) => rowMeets(x)))
  }
  /**
   * Returns the body of a loop whose trip count may be divergent; its rows then synchronise separately. Throws SptError
   * `schedule/divergent-barrier` if the body synchronises the block, or threads of a row with different trip counts.
   */
  const inRounds = (loop: For, body: Body): Body => {
    if (!divergent(loop.extent)) return body
    if (blockMeets(body) || (splitsRows(loop.extent) && anyRowMeets(body))) rejectDivergent(loop)
    return meetingInRows(body)
  }
  /** Returns `body` for the threads that satisfy `cond`. If `body` synchronises the block, all threads run it under predication. */
  const onOwners = (cond: Expr, body: Body): Body => {
    if (!divergent(cond)) return [when(cond, body)]
    return blockMeets(body) ? predicate(body, cond) : [when(cond, meetingInRows(body))]
  }
  /**
   * Returns the conjuncts of `cond` that are uniform among the threads of a cooperative loop. The other conjuncts do not concern its
   * elements, and an inactive thread would leave its iterations undone.
   */
  const conditionsOfAll = (cond: Expr, loop: For): Expr[] =>
    conjuncts(cond).filter((c) => !loop.along?.some((axis) => varying.of(c).has(axis)))
  /** Returns true if a condition differs at most along thread.x, so that a row runs a loop independently of other rows. */
  const ofLanes = (cond: Expr): boolean =>
    conjuncts(cond).every((c) => !varying.differs(c, 'thread.y') && !varying.differs(c, 'thread.z'))
  /** Pushes a condition down past barriers and cooperative loops, so that every thread reaches them. */
  const predicate = (body: Body, cond: Expr): Body => {
    const out: Stmt[] = []
    let run: Stmt[] = []
    const flush = (): void => {
      if (run.length > 0) out.push(when(cond, run))
      run = []
    }
    for (const s of body) {
      if (s.kind === 'alloc' || (s.kind === 'let' && s.uniform)) {
        if (s.kind === 'let' && !conjuncts(cond).every(holdsOnFirst)) rejectWrittenCondition(cond)
        // Pending statements do not use this name, so they stay together with the statements after it.
        out.push(s)
      } else if (onlyRunsAlways(s)) {
        // Inactive threads execute these statements too, because they also started copies: they commit, wait and count.
        flush()
        out.push(s)
      } else if (s.kind === 'let') {
        flush()
        out.push(stmt({ ...s, value: select(cond, s.value, zeroOf(s.value)) }))
      } else if (s.kind === 'for' && s.cooperative) {
        flush()
        // The loop stays cooperative, so conditions further out treat it in the same way.
        const agreed = conditionsOfAll(cond, s)
        out.push(agreed.length > 0 ? when(all(agreed), [s]) : s)
      } else if (!needsAll([s], cond)) run.push(s)
      else {
        flush()
        if (s.kind === 'for') {
          if (divergent(s.extent) && (blockMeets([s]) || !ofLanes(cond))) rejectDivergent(s)
          out.push(stmt({ ...s, body: predicate(s.body, cond) }))
        } else if (s.kind === 'if') {
          if (divergent(s.cond)) {
            out.push(...predicate(s.then, all([cond, s.cond])))
            out.push(...predicate(s.else, all([cond, negated(s.cond)])))
          } else out.push(stmt({ ...s, then: predicate(s.then, cond), else: predicate(s.else, cond) }))
        } else out.push(s)
      }
    }
    flush()
    return out
  }
  return { divergent, guard, choose, agreedOn, needsAll, inRounds, onOwners, predicate }
}

const negated = (e: Expr): Expr => ({ kind: 'unary', op: 'not', x: e, dtype: 'bool' })

/** Returns true if all threads of the block synchronise inside, at a barrier or in a cooperative loop. */
const blockMeets = (body: Body): boolean => someStmt(body, meetsInBlock)

const meetsInBlock = (s: Stmt): boolean =>
  (s.kind === 'barrier' && s.lanes === undefined) ||
  (s.kind === 'reduce' && s.lanes?.together === true) ||
  (s.kind === 'for' && s.cooperative === true && (s.along ?? []).some((axis) => axis !== 'thread.x'))

/** Returns true if threads of a row synchronise inside. */
const anyRowMeets = (body: Body): boolean => someStmt(body, meetsInRow)

const meetsInRow = (s: Stmt): boolean =>
  s.kind === 'reduce' || s.kind === 'barrier'
    ? s.lanes !== undefined
    : s.kind === 'for' && s.cooperative === true

/** Returns true if a statement is convergent: threads synchronise in it, or a part of it must run unconditionally. */
export const isConvergent = (s: Stmt): boolean =>
  someStmt([s], (x) => meetsInBlock(x) || meetsInRow(x) || runsAlways(x))

const runsAlways = (s: Stmt): boolean =>
  s.kind === 'instr' || (s.kind === 'store' && s.unconditional === true)

/** Returns true if the whole statement runs regardless of the conditions around it; conditions inside it still apply. */
function onlyRunsAlways(s: Stmt): boolean {
  if (runsAlways(s)) return true
  const inside = bodiesOf(s).flat()
  return inside.length > 0 && inside.every(onlyRunsAlways)
}

/** Restricts synchronisation to the lanes of one row, because other rows may be elsewhere. */
const meetingInRows = (body: Body): Body =>
  rewriteStmts(body, {
    stmt: (s) =>
      (s.kind === 'reduce' || s.kind === 'barrier') && s.lanes
        ? stmt({ ...s, lanes: { ...s.lanes, among: s.lanes.width } })
        : undefined,
  })

/** Returns true if a condition tests that a thread index is 0. */
const holdsOnFirst = (e: Expr): boolean =>
  e.kind === 'binary' &&
  e.op === 'eq' &&
  e.a.kind === 'builtin' &&
  levelOf(e.a.axis) === 'thread' &&
  e.b.kind === 'const' &&
  e.b.value === 0

const zeroOf = (e: Expr): Expr => ({ kind: 'const', value: 0, dtype: e.dtype })

function rejectDivergent(loop: For): never {
  failAt('schedule/divergent-barrier', loop.span, {
    message: `threads of a block run loop ${loop.name} a different number of times, and there is a barrier inside`,
    expected: 'a loop around a barrier with the same trip count for every thread of a block',
    hint: `bind the loop that decides how long ${loop.name} is to a block axis, or cache in registers instead of shared memory`,
  })
}

function rejectWrittenCondition(cond: Expr): never {
  failWith(
    'schedule/divergent-barrier',
    `threads of a block meet under a condition on values that the kernel writes, and only the threads read the values where ${printExpr(cond)}`,
    {
      expected:
        'a condition on written memory that every thread of the block evaluates, or no barrier under the condition',
      hint: 'bind the loop outside of the condition to blocks, and the loops inside to no threads',
    },
  )
}
