/**
 * Invariant reached: a nest that only fills shared memory is run once by all threads of the block together,
 * each taking every T-th element, instead of by each thread as a whole.
 */
import {
  add,
  all,
  builtin,
  div,
  type Expr,
  int,
  lt,
  mod,
  mul,
  substitute,
  THREAD_AXES,
  type ThreadAxis,
  variable,
} from '../ir/expr.ts'
import type { For, Kernel2, Stmt, Store } from '../ir/loops.ts'
import {
  accessesOf,
  type Body,
  bodiesOf,
  mapSame,
  stmt,
  substituteStmts,
  walkStmts,
  withBodies,
} from '../ir/tree.ts'
import type { Names } from './names.ts'
import { namesOf } from './names-of.ts'
import { type Axes, threadAxis, Varying } from './varying.ts'

export function cooperate(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const body = mapSame(kernel.body, (top) => distribute(top, names))
  return body === kernel.body ? kernel : { ...kernel, body }
}

function distribute(top: Stmt, names: Names): Stmt {
  const shared = new Set<string>()
  const threads = new Map<ThreadAxis, number>()
  walkStmts([top], (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'shared') shared.add(s.buffer.name)
    const axis = threadAxis(s)
    if (axis && s.kind === 'for' && s.extent.kind === 'const')
      threads.set(axis, Math.max(threads.get(axis) ?? 1, s.extent.value))
  })
  if (shared.size === 0 || threads.size === 0) return top
  const varying = new Varying(top, threads)
  const visit = (s: Stmt, around: Axes): Stmt => {
    if (fillsShared(s, shared)) {
      // A thread on which elements, values or whether it runs depend has its own; the others divide the work.
      const own = varying.ofStmt(s)
      const free = new Map([...threads].filter(([axis]) => !own.has(axis) && !around.has(axis)))
      if (free.size > 0) return spread(s, free, names)
    }
    const control = varying.ofControl(s)
    const inner = control.size === 0 ? around : new Set([...around, ...control])
    return withBodies(
      s,
      bodiesOf(s).map((b) => mapSame(b, (x) => visit(x, inner))),
    )
  }
  return visit(top, new Set())
}

/** A loop or store all of whose writes go to shared memory declared outside, none of it on threads yet. */
function fillsShared(s: Stmt, shared: ReadonlySet<string>): s is For | Store {
  if (s.kind !== 'for' && s.kind !== 'store') return false
  let onThreads = false
  walkStmts([s], (x) => {
    if (x.kind === 'for' && x.mode.kind === 'bind') onThreads = true
  })
  const written = accessesOf([s]).filter((a) => a.mode === 'write')
  return (
    !onThreads && written.length > 0 && written.every((a) => shared.has(a.buffer) && a.stmt.kind === 'store')
  )
}

/**
 * The chain of constant loops at the top of the nest as one index dealt out to threads; without such loops one
 * thread does it all.
 */
function spread(s: For | Store, threads: ReadonlyMap<ThreadAxis, number>, names: Names): Stmt {
  const chain: For[] = []
  let body: Body = [s]
  for (;;) {
    const only = body.length === 1 ? body[0] : undefined
    if (only?.kind !== 'for' || only.extent.kind !== 'const') break
    chain.push(only)
    body = only.body
  }
  const total = chain.reduce((n, l) => n * (l.extent.kind === 'const' ? l.extent.value : 1), 1)
  let count = 1
  let thread: Expr = int(0)
  for (const axis of THREAD_AXES) {
    const extent = threads.get(axis)
    if (extent === undefined) continue
    thread = add(thread, mul(builtin(axis), int(count)))
    count *= extent
  }
  const round = names.fresh('round')
  const at = add(mul(variable(round), int(count)), thread)
  const map = new Map<string, Expr>()
  let rest: Expr = at
  for (let k = chain.length - 1; k >= 0; k--) {
    const l = chain[k]!
    map.set(l.var, k === 0 ? rest : mod(rest, l.extent))
    rest = div(rest, l.extent)
  }
  const conditions = [
    ...(total % count === 0 ? [] : [lt(at, int(total))]),
    ...chain.flatMap((l) => l.guards.map((g) => substitute(g, map))),
  ]
  const inner = substituteStmts(body, map)
  const guarded: Body =
    conditions.length > 0 ? [stmt({ kind: 'if', cond: all(conditions), then: inner, else: [] })] : inner
  return stmt<For>({
    kind: 'for',
    var: round,
    name: 'round',
    nest: chain[0]?.nest ?? 'copy',
    reduce: false,
    extent: int(Math.ceil(total / count)),
    guards: [],
    mode: { kind: 'serial' },
    cooperative: true,
    along: [...threads.keys()],
    body: guarded,
    span: s.span,
  })
}
