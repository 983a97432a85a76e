/**
 * What stands under conditions that threads of a block may disagree on: barriers, shared work and exchanges between
 * lanes stay outside of them, so that every thread that has to arrive does.
 */
import { fail } from '../ast/diagnostic.ts'
import { all, conjuncts, type Expr, select } from '../ir/expr.ts'
import { freeVars, someExpr } from '../ir/expr-tree.ts'
import type { For, Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, rewriteStmts, stmt, walkStmts } from '../ir/tree.ts'

/** Whether all threads of the block have to take part in the statement. */
export function isCooperative(s: Stmt): boolean {
  let found = false
  walkStmts([s], (x) => {
    if (x.kind === 'for' && x.cooperative) found = true
  })
  return found
}

export const branch = (cond: Expr, then: Body): Stmt => stmt({ kind: 'if', cond, then, else: [] })

/** Whether threads of one block may disagree on it. */
export const divergent = (e: Expr): boolean =>
  someExpr(e, (x) => x.kind === 'builtin' && x.axis.startsWith('thread'))

/** `body` where all conditions hold. A barrier stays outside of conditions that threads may disagree on. */
export function guard(conditions: readonly Expr[], body: Body): Body {
  if (conditions.length === 0) return body
  const cond = all(conditions)
  if (!divergent(cond) || !needsAll(body, cond)) return [branch(cond, body)]
  if (blockMeets(body) || body.some(rowMeets)) return predicate(body, cond)
  // Rows that run loops a different number of times: what is said of a row holds around them.
  const terms = conjuncts(cond)
  const row = terms.filter((c) => !splitsRows(c))
  const inner = predicate(body, all(terms.filter(splitsRows)))
  return row.length > 0 ? [branch(all(row), inner)] : inner
}

/** Whether all threads of the block meet inside: at a barrier, or to share work out. */
const blockMeets = (body: Body): boolean => body.some(meetsInBlock)

function meetsInBlock(s: Stmt): boolean {
  if (s.kind === 'barrier') return s.lanes === undefined
  if (s.kind === 'reduce') return s.lanes?.together === true
  if (s.kind === 'for' && s.cooperative && s.along?.some((axis) => axis !== 'thread.x')) return true
  return bodiesOf(s).some((b) => b.some(meetsInBlock))
}

/** Whether threads meet inside that a condition would keep apart: of the block, or of one row of it. */
export const needsAll = (body: Body, cond: Expr): boolean =>
  blockMeets(body) || body.some(rowMeets) || (splitsRows(cond) && body.some(anyRowMeets))

function anyRowMeets(s: Stmt): boolean {
  if (s.kind === 'reduce' || s.kind === 'barrier') return s.lanes !== undefined
  return (s.kind === 'for' && s.cooperative === true) || bodiesOf(s).some((b) => b.some(anyRowMeets))
}

/** Whether threads of one row of the block may disagree on it. */
const splitsRows = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'builtin' && x.axis === 'thread.x')

/** Rows of lanes that run a loop a different number of times meet in it by themselves. */
function rowMeets(s: Stmt): boolean {
  if (s.kind === 'reduce' || s.kind === 'barrier') return s.lanes !== undefined
  if (s.kind === 'for' && s.cooperative) return true
  return !(s.kind === 'for' && divergent(s.extent)) && bodiesOf(s).some((b) => b.some(rowMeets))
}

/**
 * The body of a loop that threads may run a different number of times: rows meet in it by themselves.
 * @throws SptError `schedule/divergent-barrier` where the block, or threads of a row that part, would meet in it
 */
export function inRounds(loop: For, body: Body): Body {
  if (!divergent(loop.extent)) return body
  if (blockMeets(body) || (splitsRows(loop.extent) && body.some(anyRowMeets))) refuseDivergent(loop)
  return apart(body)
}

/** `body` on the threads where `cond` holds, of whole rows: rows meet in it by themselves, or everyone takes part. */
export function onOwners(cond: Expr, body: Body): Body {
  if (!divergent(cond)) return [branch(cond, body)]
  return blockMeets(body) ? predicate(body, cond) : [branch(cond, apart(body))]
}

/** Lanes of a row meet alone: their neighbours may be elsewhere. */
const apart = (body: Body): Body =>
  rewriteStmts(body, {
    stmt: (s) =>
      (s.kind === 'reduce' || s.kind === 'barrier') && s.lanes
        ? stmt({ ...s, lanes: { ...s.lanes, among: s.lanes.width } })
        : undefined,
  })

/**
 * What holds of all threads that share a loop out, or of none. The rest is about elements that the loop does not
 * depend on; a thread that sat out for it would leave its share undone.
 */
function conditionsOfAll(cond: Expr, loop: For): Expr[] {
  const along: ReadonlySet<string> = new Set(loop.along)
  return conjuncts(cond).filter((c) => ![...freeVars(c)].some((v) => along.has(v)))
}

/** Whether a condition is about the threads of a row alone: a row that runs a loop needs no other to be in range. */
const ofLanes = (cond: Expr): boolean =>
  conjuncts(cond).every(
    (c) => !someExpr(c, (x) => x.kind === 'builtin' && x.axis.startsWith('thread') && x.axis !== 'thread.x'),
  )

/** Pushes a condition down past barriers and shared work, so that every thread reaches them. */
export function predicate(body: Body, cond: Expr): Body {
  const out: Stmt[] = []
  let run: Stmt[] = []
  const flush = (): void => {
    if (run.length > 0) out.push(branch(cond, run))
    run = []
  }
  for (const s of body) {
    if (s.kind === 'alloc') {
      // What is pending does not know of it, and stays together with what follows.
      out.push(s)
    } else if (s.kind === 'instr' || (s.kind === 'store' && s.unconditional)) {
      // A thread that sits out has started its share of the copies, too: it ends its group, waits, and counts.
      flush()
      out.push(s)
    } else if (s.kind === 'let') {
      flush()
      out.push(stmt({ ...s, value: select(cond, s.value, zeroOf(s.value)) }))
    } else if (s.kind === 'for' && s.cooperative) {
      flush()
      // It stays cooperative: conditions further out are judged the same way.
      const agreed = conditionsOfAll(cond, s)
      out.push(agreed.length > 0 ? branch(all(agreed), [s]) : s)
    } else if (!needsAll([s], cond)) run.push(s)
    else {
      flush()
      if (s.kind === 'for') {
        if (divergent(s.extent) && (blockMeets([s]) || !ofLanes(cond))) refuseDivergent(s)
        out.push(stmt({ ...s, body: predicate(s.body, cond) }))
      } else if (s.kind === 'if') {
        if (divergent(s.cond)) {
          out.push(...predicate(s.then, all([cond, s.cond])))
          out.push(...predicate(s.else, all([cond, { kind: 'unary', op: 'not', x: s.cond, dtype: 'bool' }])))
        } else out.push(stmt({ ...s, then: predicate(s.then, cond), else: predicate(s.else, cond) }))
      } else out.push(s)
    }
  }
  flush()
  return out
}

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
