/**
 * Divergent control flow around barriers, by predication. What stands under conditions that threads of a block may
 * disagree on: barriers, shared work and exchanges between lanes stay outside of them, so that every thread that has to
 * arrive does.
 */

import { fail } from '../ast/diagnostic.ts'
import type { Names } from '../ir/bound-names.ts'
import { all, binary, conjuncts, type Expr, int, load, select, variable } from '../ir/expr.ts'
import { levelOf } from '../ir/hardware-axes.ts'
import type { Buffer, For, Stmt } from '../ir/loops.ts'
import { printExpr } from '../ir/print-stage2.ts'
import { alloc, barrier, define, store, when } from '../ir/statement-builders.ts'
import { type Body, bodiesOf, rewriteStmts, someStmt, stmt } from '../ir/tree.ts'
import type { Varying } from './divergence-analysis.ts'
import { FIRST_THREAD } from './instruction-selection.ts'

/** Whether all threads of the block have to take part in the statement. */
export const isCooperative = (s: Stmt): boolean =>
  someStmt([s], (x) => x.kind === 'for' && x.cooperative === true)

/** Which statements stand under conditions, once it is known what threads disagree on. */
export class Conditions {
  readonly #varying: Varying
  readonly #names: Names

  constructor(varying: Varying, names: Names) {
    this.#varying = varying
    this.#names = names
  }

  /** Whether threads of one block may disagree on it. */
  divergent(e: Expr): boolean {
    return this.#varying.differs(e)
  }

  /** Whether threads of one row of the block may disagree on it. */
  #splitsRows(e: Expr): boolean {
    return this.#varying.differs(e, 'thread.x')
  }

  /** `body` where all conditions hold. A barrier stays outside of conditions that threads may disagree on. */
  guard(conditions: readonly Expr[], body: Body): Body {
    return conditions.length === 0 ? body : this.choose(all(conditions), body, [])
  }

  /** `then` where the condition holds, else `otherwise`; what all have to arrive at is reached by all. */
  choose(cond: Expr, then: Body, otherwise: Body): Body {
    const synchronize = this.needsAll(then, cond) || this.needsAll(otherwise, cond)
    if (!synchronize || !this.divergent(cond)) {
      const agreed = synchronize ? this.agreed(cond, [...then, ...otherwise]) : { before: [], value: cond }
      return [...agreed.before, when(agreed.value, then, otherwise)]
    }
    if (otherwise.length > 0)
      return [...this.predicate(then, cond), ...this.predicate(otherwise, negated(cond))]
    if (blockMeets(then) || then.some((s) => this.#rowMeets(s))) return this.predicate(then, cond)
    // Rows that run loops a different number of times: what is said of a row holds around them.
    const terms = conjuncts(cond)
    const row = terms.filter((c) => !this.#splitsRows(c))
    const inner = this.predicate(then, all(terms.filter((c) => this.#splitsRows(c))))
    return row.length > 0 ? [when(all(row), inner)] : inner
  }

  /**
   * A value that decides whether or how often threads meet in `body`, which all of them compute alike, from memory that
   * the launch writes: one thread reads it and tells the others. That it is one value follows from where barriers are;
   * WGSL asks for a text that says so.
   */
  agreed(value: Expr, body: Body): { readonly before: Body; readonly value: Expr } {
    if (!blockMeets(body) || !this.#varying.of(value).has('memory')) return { before: [], value }
    const broadcast = this.#names.fresh('agreed')
    const slot: Buffer = Object.freeze({
      name: this.#names.fresh('agreed_shared'),
      dtype: 'i32',
      shape: [int(1)],
      scope: 'shared',
      role: 'local',
      fill: 0,
      accumulate: 'i32',
    })
    const truth = value.dtype === 'bool'
    // What indices are in range by is still seen.
    const known = truth ? conjuncts(value).filter((e) => !this.#varying.of(e).has('memory')) : []
    const word = truth ? select(value, int(1), int(0)) : value
    return {
      before: [
        alloc(slot),
        barrier(),
        when(FIRST_THREAD, [store(slot.name, [int(0)], word)]),
        barrier(),
        define(broadcast, load(slot.name, [int(0)], 'i32'), { uniform: true }),
      ],
      value: truth ? all([...known, binary('ne', variable(broadcast), int(0))]) : variable(broadcast),
    }
  }

  /** Whether threads meet inside that a condition would keep apart: of the block, or of one row of it. */
  needsAll(body: Body, cond: Expr): boolean {
    return (
      blockMeets(body) ||
      body.some((s) => this.#rowMeets(s)) ||
      (this.#splitsRows(cond) && body.some(anyRowMeets))
    )
  }

  /** Rows of lanes that run a loop a different number of times meet in it by themselves. */
  #rowMeets(s: Stmt): boolean {
    if (s.kind === 'reduce' || s.kind === 'barrier') return s.lanes !== undefined
    if (s.kind === 'for' && s.cooperative) return true
    return (
      !(s.kind === 'for' && this.divergent(s.extent)) &&
      bodiesOf(s).some((b) => b.some((x) => this.#rowMeets(x)))
    )
  }

  /**
   * The body of a loop that threads may run a different number of times: rows meet in it by themselves.
   * @throws SptError `schedule/divergent-barrier` where the block, or threads of a row that part, would meet in it
   */
  inRounds(loop: For, body: Body): Body {
    if (!this.divergent(loop.extent)) return body
    if (blockMeets(body) || (this.#splitsRows(loop.extent) && body.some(anyRowMeets))) refuseDivergent(loop)
    return meetingInRows(body)
  }

  /** `body` on the threads where `cond` holds, of whole rows: rows meet in it by themselves, or everyone takes part. */
  onOwners(cond: Expr, body: Body): Body {
    if (!this.divergent(cond)) return [when(cond, body)]
    return blockMeets(body) ? this.predicate(body, cond) : [when(cond, meetingInRows(body))]
  }

  /**
   * What holds of all threads that share a loop out, or of none. The rest is about elements that the loop does not
   * depend on; a thread that sat out for it would leave its share undone.
   */
  #conditionsOfAll(cond: Expr, loop: For): Expr[] {
    return conjuncts(cond).filter((c) => !loop.along?.some((axis) => this.#varying.of(c).has(axis)))
  }

  /** Whether a condition is about the threads of a row alone: a row that runs a loop needs no other to be in range. */
  #ofLanes(cond: Expr): boolean {
    return conjuncts(cond).every(
      (c) => !this.#varying.differs(c, 'thread.y') && !this.#varying.differs(c, 'thread.z'),
    )
  }

  /** Pushes a condition down past barriers and shared work, so that every thread reaches them. */
  predicate(body: Body, cond: Expr): Body {
    const out: Stmt[] = []
    let run: Stmt[] = []
    const flush = (): void => {
      if (run.length > 0) out.push(when(cond, run))
      run = []
    }
    for (const s of body) {
      if (s.kind === 'alloc' || (s.kind === 'let' && s.uniform)) {
        if (s.kind === 'let' && !conjuncts(cond).every(holdsOnFirst)) refuseUntold(cond)
        // What is pending does not know of it, and stays together with what follows.
        out.push(s)
      } else if (onlyRunsAlways(s)) {
        // A thread that sits out has started its share of the copies, too: it ends its group, waits, and counts.
        flush()
        out.push(s)
      } else if (s.kind === 'let') {
        flush()
        out.push(stmt({ ...s, value: select(cond, s.value, zeroOf(s.value)) }))
      } else if (s.kind === 'for' && s.cooperative) {
        flush()
        // It stays cooperative: conditions further out are judged the same way.
        const agreed = this.#conditionsOfAll(cond, s)
        out.push(agreed.length > 0 ? when(all(agreed), [s]) : s)
      } else if (!this.needsAll([s], cond)) run.push(s)
      else {
        flush()
        if (s.kind === 'for') {
          if (this.divergent(s.extent) && (blockMeets([s]) || !this.#ofLanes(cond))) refuseDivergent(s)
          out.push(stmt({ ...s, body: this.predicate(s.body, cond) }))
        } else if (s.kind === 'if') {
          if (this.divergent(s.cond)) {
            out.push(...this.predicate(s.then, all([cond, s.cond])))
            out.push(...this.predicate(s.else, all([cond, negated(s.cond)])))
          } else
            out.push(stmt({ ...s, then: this.predicate(s.then, cond), else: this.predicate(s.else, cond) }))
        } else out.push(s)
      }
    }
    flush()
    return out
  }
}

const negated = (e: Expr): Expr => ({ kind: 'unary', op: 'not', x: e, dtype: 'bool' })

/** Whether all threads of the block meet inside: at a barrier, or to share work out. */
const blockMeets = (body: Body): boolean => body.some(meetsInBlock)

function meetsInBlock(s: Stmt): boolean {
  if (s.kind === 'barrier') return s.lanes === undefined
  if (s.kind === 'reduce') return s.lanes?.together === true
  if (s.kind === 'for' && s.cooperative && s.along?.some((axis) => axis !== 'thread.x')) return true
  return bodiesOf(s).some((b) => b.some(meetsInBlock))
}

function anyRowMeets(s: Stmt): boolean {
  if (s.kind === 'reduce' || s.kind === 'barrier') return s.lanes !== undefined
  return (s.kind === 'for' && s.cooperative === true) || bodiesOf(s).some((b) => b.some(anyRowMeets))
}

/** Whether threads meet in it at all, which no condition may keep them from, or part of it runs whatever is said around it. */
export const isConvergent = (s: Stmt): boolean => meetsInBlock(s) || anyRowMeets(s) || alwaysRuns(s)

const alwaysRuns = (s: Stmt): boolean =>
  s.kind === 'instr' ||
  (s.kind === 'store' && s.unconditional === true) ||
  bodiesOf(s).some((b) => b.some(alwaysRuns))

/** Whether all of it runs whatever is said around it; conditions of its own are still asked. */
function onlyRunsAlways(s: Stmt): boolean {
  if (s.kind === 'instr') return true
  if (s.kind === 'store') return s.unconditional === true
  const inside = bodiesOf(s).flat()
  return inside.length > 0 && inside.every(onlyRunsAlways)
}

/** Lanes of a row meet alone: their neighbours may be elsewhere. */
const meetingInRows = (body: Body): Body =>
  rewriteStmts(body, {
    stmt: (s) =>
      (s.kind === 'reduce' || s.kind === 'barrier') && s.lanes
        ? stmt({ ...s, lanes: { ...s.lanes, among: s.lanes.width } })
        : undefined,
  })

/** Whether it is said of the first thread of a block. */
const holdsOnFirst = (e: Expr): boolean =>
  e.kind === 'binary' &&
  e.op === 'eq' &&
  e.a.kind === 'builtin' &&
  levelOf(e.a.axis) === 'thread' &&
  e.b.kind === 'const' &&
  e.b.value === 0

const zeroOf = (e: Expr): Expr => ({ kind: 'const', value: 0, dtype: e.dtype })

function refuseDivergent(loop: For): never {
  fail({
    code: 'schedule/divergent-barrier',
    message: `threads of a block run loop ${loop.name} a different number of times, and there is a barrier inside`,
    ...(loop.span ? { span: loop.span } : {}),
    expected: 'a loop around a barrier whose trip count is the same for all threads of a block',
    hint: `bind the loop that decides how long ${loop.name} is to a block axis, or cache in registers instead of shared memory`,
  })
}

function refuseUntold(cond: Expr): never {
  fail({
    code: 'schedule/divergent-barrier',
    message: `threads of a block meet under a condition that reads what the kernel writes, and only those read it where ${printExpr(cond)}`,
    expected:
      'a condition on memory that is written that all threads of the block evaluate, or none of them meeting under it',
    hint: 'bind the loop outside of the condition to blocks, or the loops inside of it to no threads',
  })
}
