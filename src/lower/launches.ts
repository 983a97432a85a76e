/**
 * Invariant reached: each top-level nest is a launch (or a clear); bound loops are hardware indices; guards are
 * `if`s; memory that threads share is written by the threads that own the element and no others.
 */
import { fail, InternalError, invariant } from '../ast/diagnostic.ts'
import {
  all,
  binary,
  builtin,
  type Expr,
  eq,
  freeVars,
  int,
  lt,
  max,
  rewriteExpr,
  sameExpr,
  select,
  someExpr,
  THREAD_AXES,
  type ThreadAxis,
} from '../ir/expr.ts'
import { isTogether, type Lanes, lanesIn } from '../ir/lanes.ts'
import type { Buffer, Fill, For, Kernel2, Launch, PlanStep, Stmt } from '../ir/loops.ts'
import {
  accessesOf,
  type Body,
  bodiesOf,
  hasBarrier,
  rewriteStmts,
  stmt,
  substituteStmts,
  walkStmts,
} from '../ir/tree.ts'
import { insertBarriers } from './barriers.ts'
import { flatNest, isParallel } from './flat-nest.ts'
import type { Names } from './names.ts'

/** `warp`: lanes that can meet without the rest of their block, 1 for none. */
export function makeLaunches(kernel: Kernel2, names: Names, warp = 1): PlanStep[] {
  const steps: PlanStep[] = []
  const parallel = isParallel(kernel.body)
  const indptr = new Set(
    kernel.buffers.flatMap((b) => (b.role === 'index' && b.name.endsWith('_indptr') ? [b.name] : [])),
  )
  for (const s of kernel.body) {
    const name = `${kernel.name}_${steps.length}`
    if (s.kind === 'fill') {
      if (isZero(s.value)) steps.push({ kind: 'clear', buffer: s.buffer })
      else steps.push(launchOf([fillNest(s, kernel, names, parallel)], name, indptr, warp))
    } else steps.push(launchOf([s], name, indptr, warp))
  }
  return steps
}

const isZero = (e: Expr): boolean => e.kind === 'const' && Object.is(e.value, 0)

/** A buffer set to a value. */
function fillNest(s: Fill, kernel: Kernel2, names: Names, parallel: boolean): Stmt {
  const buffer = kernel.buffers.find((b) => b.name === s.buffer)
  invariant(buffer, `no buffer ${s.buffer}`)
  return flatNest(buffer, 'fill', names, parallel, (p) =>
    stmt({ kind: 'store', buffer: s.buffer, index: [p], value: s.value }),
  )
}

type Extents = ReadonlyMap<ThreadAxis, Expr>

function launchOf(nest: Body, name: string, indptr: ReadonlySet<string>, warp: number): Launch {
  const body = insertBarriers(nest, indptr, warp)
  const extents = collectExtents(body)
  const extent = (axis: ThreadAxis): Expr => extents.get(axis) ?? int(1)
  const threads = (axis: ThreadAxis): number => {
    const e = extent(axis)
    if (e.kind !== 'const') throw new InternalError(`the extent of ${axis} is not constant`)
    return Math.max(1, e.value)
  }
  return {
    kind: 'launch',
    name,
    grid: [hostExtent(extent('block.x')), hostExtent(extent('block.y')), hostExtent(extent('block.z'))],
    block: [threads('thread.x'), threads('thread.y'), threads('thread.z')],
    body: new Binder(extents, body).run(),
  }
}

/** Grid sizes are over sizes, which are not negative: truncating division will do. */
const hostExtent = (e: Expr): Expr =>
  rewriteExpr(e, (x) =>
    x.kind === 'binary' && (x.op === 'div' || x.op === 'mod')
      ? binary(x.op === 'div' ? 'quo' : 'rem', x.a, x.b)
      : undefined,
  )

/** The largest extent bound to each axis. */
function collectExtents(body: Body): Extents {
  const out = new Map<ThreadAxis, Expr>()
  walkStmts(body, (s) => {
    if (s.kind !== 'for' || s.mode.kind !== 'bind') return
    const known = out.get(s.mode.to)
    out.set(s.mode.to, known && !sameExpr(known, s.extent) ? max(known, s.extent) : s.extent)
  })
  const { count } = lanesIn(body)
  const onLanes = out.get('thread.x')
  if (count > 1) out.set('thread.x', onLanes ? max(onLanes, int(count)) : int(count))
  for (const [axis, e] of out)
    if (e.kind === 'binary' && e.op === 'max' && e.a.kind === 'const' && e.b.kind === 'const')
      out.set(axis, int(Math.max(e.a.value, e.b.value)))
  return out
}

class Binder {
  readonly #extents: Extents
  readonly #body: Body
  readonly #scopes = new Map<string, Buffer['scope']>()
  readonly #lanes: Lanes

  constructor(extents: Extents, body: Body) {
    this.#extents = extents
    this.#body = body
    this.#lanes = lanesIn(body)
    walkStmts(body, (s) => {
      if (s.kind === 'alloc') this.#scopes.set(s.buffer.name, s.buffer.scope)
    })
  }

  run(): Body {
    return this.#list(this.#body, new Set())
  }

  #list(body: Body, on: ReadonlySet<ThreadAxis>): Body {
    return body.flatMap((s) => this.#statement(s, on))
  }

  #statement(s: Stmt, on: ReadonlySet<ThreadAxis>): Body {
    const owners = this.#owners(s, on)
    if (owners.length > 0)
      return [
        branch(
          all(owners.map((a) => eq(builtin(a), int(0)))),
          this.#statement(s, new Set([...on, ...owners])),
        ),
      ]
    switch (s.kind) {
      case 'for':
        return this.#loop(s, on)
      case 'if': {
        if (s.cond.kind === 'const') return this.#list(s.cond.value !== 0 ? s.then : s.else, on)
        const then = this.#list(s.then, on)
        const otherwise = this.#list(s.else, on)
        if (!needsAll(then, s.cond) && !needsAll(otherwise, s.cond))
          return [stmt({ ...s, then, else: otherwise })]
        if (!divergent(s.cond)) return [stmt({ ...s, then, else: otherwise })]
        return [
          ...predicate(then, s.cond),
          ...predicate(otherwise, { kind: 'unary', op: 'not', x: s.cond, dtype: 'bool' }),
        ]
      }
      default:
        return [s]
    }
  }

  #loop(loop: For, on: ReadonlySet<ThreadAxis>): Body {
    if (loop.mode.kind !== 'bind') {
      const body = this.#list(loop.body, loop.cooperative ? new Set(THREAD_AXES) : on)
      if (!divergent(loop.extent)) return [stmt({ ...loop, guards: [], body: guard(loop.guards, body) })]
      if (blockMeets(body) || (splitsRows(loop.extent) && body.some(anyRowMeets))) refuseDivergent(loop)
      return [stmt({ ...loop, guards: [], body: guard(loop.guards, apart(body)) })]
    }
    const axis = loop.mode.to
    const whole = this.#extents.get(axis)!
    const index = builtin(axis)
    const map = new Map<string, Expr>([[loop.var, index]])
    // The loop variable is gone: what it bounded has to be re-said of the hardware index.
    const inner = substituteStmts(loop.body, map)
    const guards = (substituteStmts([{ ...loop, body: [] }], map)[0] as For).guards
    const range = sameExpr(whole, loop.extent) ? [] : [lt(index, loop.extent)]
    return guard([...range, ...guards], this.#list(inner, new Set([...on, axis])))
  }

  /**
   * The launch's axes that no loop in or around this statement is bound to, if the statement changes memory
   * that others see: one index of each such axis does it.
   */
  #owners(s: Stmt, on: ReadonlySet<ThreadAxis>): ThreadAxis[] {
    if (s.kind === 'alloc' || s.kind === 'let' || s.kind === 'barrier') return []
    const inside = new Set<ThreadAxis>()
    walkStmts([s], (x) => {
      if (x.kind === 'for' && x.mode.kind === 'bind') inside.add(x.mode.to)
    })
    if (isTogether(s, this.#lanes)) inside.add('thread.x')
    const idle = THREAD_AXES.filter((a) => this.#extents.has(a) && !on.has(a) && !inside.has(a))
    if (idle.length === 0 || hasBarrier([s]) || isCooperative(s)) return []
    const local = new Set<string>()
    walkStmts([s], (x) => {
      if (x.kind === 'alloc') local.add(x.buffer.name)
    })
    const written = accessesOf([s]).filter((a) => a.mode === 'write' && !local.has(a.buffer))
    const scopeOf = (b: string): Buffer['scope'] => this.#scopes.get(b) ?? 'global'
    // Registers are each thread's own: all threads must run what fills them.
    if (written.some((a) => scopeOf(a.buffer) === 'register')) return []
    const global = written.some((a) => scopeOf(a.buffer) === 'global')
    const shared = written.some((a) => scopeOf(a.buffer) === 'shared')
    return idle.filter((a) => (a.startsWith('thread') ? global || shared : global && !shared))
  }
}

/** Whether all threads of the block have to take part in the statement. */
function isCooperative(s: Stmt): boolean {
  let found = false
  walkStmts([s], (x) => {
    if (x.kind === 'for' && x.cooperative) found = true
  })
  return found
}

const branch = (cond: Expr, then: Body): Stmt => stmt({ kind: 'if', cond, then, else: [] })

/** Whether threads of one block may disagree on it. */
const divergent = (e: Expr): boolean =>
  someExpr(e, (x) => x.kind === 'builtin' && x.axis.startsWith('thread'))

/** `body` where all conditions hold. A barrier stays outside of conditions that threads may disagree on. */
function guard(conditions: readonly Expr[], body: Body): Body {
  if (conditions.length === 0) return body
  const cond = all(conditions)
  if (!divergent(cond) || !needsAll(body, cond)) return [branch(cond, body)]
  if (blockMeets(body) || body.some(rowMeets)) return predicate(body, cond)
  // Rows that run loops a different number of times: what is said of a row holds around them.
  const terms = termsOf(cond)
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
const needsAll = (body: Body, cond: Expr): boolean =>
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
  return termsOf(cond).filter((c) => ![...freeVars(c)].some((v) => along.has(v)))
}

const termsOf = (e: Expr): Expr[] =>
  e.kind === 'binary' && e.op === 'and' ? [...termsOf(e.a), ...termsOf(e.b)] : [e]

/** Whether a condition is about the threads of a row alone: a row that runs a loop needs no other to be in range. */
const ofLanes = (cond: Expr): boolean =>
  termsOf(cond).every(
    (c) => !someExpr(c, (x) => x.kind === 'builtin' && x.axis.startsWith('thread') && x.axis !== 'thread.x'),
  )

/** Pushes a condition down past barriers and shared work, so that every thread reaches them. */
function predicate(body: Body, cond: Expr): Body {
  const out: Stmt[] = []
  let run: Stmt[] = []
  const flush = (): void => {
    if (run.length > 0) out.push(branch(cond, run))
    run = []
  }
  for (const s of body) {
    if (s.kind === 'alloc' || s.kind === 'instr') {
      // A thread that sits out has started its share of the copies, too: it ends its group and waits.
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
