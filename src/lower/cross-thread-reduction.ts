/**
 * Reduction across threads, by warp shuffles and shared memory. Invariant reached: no reduction loop is bound to threads,
 * except around atomic updates of memory.
 *
 * Each thread reduces its share into registers. The shares of lanes that can exchange registers meet there first (`Lanes`);
 * those of other threads meet in shared memory, where the upper half of the threads is folded onto the lower half until one
 * is left (Harris, "Optimizing parallel reduction in CUDA") or until lanes can exchange again. One thread updates the target
 * (`combine-partials.ts`). Barriers come with `barriers.ts`.
 */

import { conditionsAround, hoistable } from '../analysis/dominating-conditions.ts'
import { fail } from '../ast/diagnostic.ts'
import { accessesOf, writesOf } from '../ir/accesses.ts'
import { allocatedNames } from '../ir/bindings.ts'
import type { Names } from '../ir/bound-names.ts'
import { namesOf } from '../ir/bound-names.ts'
import { replaceLoop } from '../ir/definitions.ts'
import { all, bool, constant, type Expr, int, type Load, load } from '../ir/expr.ts'
import { children, isLazy, mentionsSome, withChildren } from '../ir/expr-tree.ts'
import { boundIndex } from '../ir/hardware-axes.ts'
import { mapSame } from '../ir/lists.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/loops.ts'
import { elementChanges, reductionsOf, scattersElements } from '../ir/reductions.ts'
import { alloc, local, store, when } from '../ir/statement-builders.ts'
import { keyOf } from '../ir/structural-equality.ts'
import { type Body, bodiesOf, replaceStmt, stmt, walkStmts, withBodies } from '../ir/tree.ts'
import { outsideLifetime } from './accumulator-live-range.ts'
import { combinePartials, elementOf, nest, type Roles } from './combine-partials.ts'
import { startsOf } from './reduction-initialization.ts'
import { laneWidth, onX } from './warp-lanes.ts'

/** What of a target decides how threads reduce together: see `LowerOptions`. */
interface Exchange {
  readonly lanes?: number | undefined
  readonly together?: boolean | undefined
}

export function reduceAcrossThreads(kernel: Kernel2, exchange: Exchange = {}): Kernel2 {
  const names = namesOf(kernel)
  const shares = new Set<string>()
  let body: Body = kernel.body
  for (;;) {
    const found = latest(body, shares)
    if (!found) break
    body = rewrite(body, found.reduce, found.path, {
      names,
      inRegisters: new Set([...allocatedNames(body, 'register'), ...registersOf(kernel)]),
      done: shares,
      exchange,
    })
  }
  if (shares.size === 0) return kernel
  return { ...kernel, body: body.map((s) => settled(s, shares)) }
}

/** Bytes of shared memory that the shares of a reduction may take to meet all at once; the largest element. */
const AT_ONCE = 16 * 1024
const SHARE_BYTES = 8

/** Elements of a thread's share that are accessed one by one in the text. */
const MOST_UNROLLED = 8

const registersOf = ({ buffers }: Kernel2): readonly string[] =>
  [...buffers.values()].filter((b) => b.scope === 'register').map((b) => b.name)

const extent = (l: For): Expr => l.extent
const constantExtent = (l: For): number => (l.extent.kind === 'const' ? l.extent.value : 1)

const onThreads = (l: For): boolean => boundIndex(l, 'thread') !== undefined

/**
 * The last reduction over threads that is not into shares yet. What is completed after a loop comes before what
 * an earlier turn put there, so going backwards keeps the order, and the first keeps its initialisation first.
 */
function latest(
  body: Body,
  shares: ReadonlySet<string>,
): { reduce: Reduce; path: readonly For[] } | undefined {
  let out: { reduce: Reduce; path: readonly For[] } | undefined
  walkStmts(body, (s, path) => {
    if (s.kind !== 'reduce' || s.targets.some((t) => shares.has(t.buffer))) return
    const inside = path.slice(outsideLifetime(s, path))
    if (!inside.some((l) => l.reduce && onThreads(l))) return
    if (!(s.atomic && scattersElements(s, inside))) out = { reduce: s, path }
  })
  return out
}

interface Context {
  readonly names: Names
  /** Buffers of which each thread has its own. */
  readonly inRegisters: ReadonlySet<string>
  /** Buffers that the shares are in. */
  readonly done: Set<string>
  readonly exchange: Exchange
}

function rewrite(body: Body, reduce: Reduce, path: readonly For[], context: Context): Body {
  const { names, done } = context
  const { lanes = 1, together } = context.exchange
  const roles = rolesOf(reduce, path)
  const { serial, others, folded, root } = roles
  // Others combine into the target in the meantime, or nothing does where a condition leaves it out: it starts before.
  const starts = roles.startsApart || (roles.alone && combinesElsewhere(root, reduce))
  const first = starts ? startsOf(reduce, path.slice(path.indexOf(root)), names, roles.exists) : []
  if (!first) refuse(root, `its elements cannot be started before ${root.name}`)
  const room = (scope: Buffer['scope'], shape: readonly Expr[], k: number): Buffer => {
    const { buffer, dtype } = reduce.targets[k]!
    return local(names.fresh(`${buffer}_${scope === 'shared' ? 'shares' : 'share'}`), dtype, shape, scope)
  }
  const registers = reduce.targets.map((_, k) => room('register', serial.map(extent), k))
  const total = folded.reduce((n, l) => n * constantExtent(l), 1)
  const width = laneWidth(body, reduce, folded.at(-1)!, lanes)
  // Groups of lanes that are left over, and whether they are few enough to be combined by lanes again.
  const groups = total / width
  const lanesAgain =
    groups > 1 && laneWidth(body, reduce, folded.at(-1)!, groups) === groups && groups <= width
  // All elements of a thread's share meet at once where that is little memory, else one after the other.
  const count = [...serial, ...others].reduce((n, l) => n * constantExtent(l), groups)
  const atOnce = count * SHARE_BYTES * reduce.targets.length <= AT_ONCE
  const rows = atOnce ? serial.map(extent) : []
  // Neighbouring threads have neighbouring places: where they are not those that meet, each its elements side by side.
  const rankFirst = !folded.some(onX)
  const places = others.map(extent)
  const shape = rankFirst ? [int(groups), ...places, ...rows] : [...rows, ...places, int(groups)]
  const scratch = groups > 1 ? reduce.targets.map((_, k) => room('shared', shape, k)) : []
  const identity = (k: number): Expr => {
    const e = reduce.reducer.identity[k]!
    return e.kind === 'const' ? constant(e.value, reduce.targets[k]!.dtype) : e
  }
  // Each thread's share starts at the identity and takes the place of the target.
  const start = nest(serial, names, (map) =>
    registers.map((b, k) => store(b.name, elementOf(roles, map), identity(k))),
  )
  const own: Reduce = stmt({
    ...reduce,
    init: false,
    atomic: false,
    targets: registers.map((b) => load(b.name, elementOf(roles), b.dtype)),
  })
  const { early, targets } = loadedEarly(body, reduce, root, path, names)
  const finish = combinePartials(
    {
      reduce: { ...reduce, targets, init: reduce.init && !starts },
      roles: { ...roles, alone: roles.alone && !starts, serial: atOnce ? unrolledWhole(serial) : serial },
      registers,
      scratch,
      width,
      groups,
      lanesAgain,
      atOnce,
      rankFirst,
      scattered: !reduce.targets.some((t) => context.inRegisters.has(t.buffer)),
      lane: { among: lanes, together },
    },
    names,
  )
  const before = [...first, ...early, ...registers.map(alloc), ...start]
  for (const b of [...registers, ...scratch]) done.add(b.name)
  const replaced = replaceStmt(body, reduce, () => own)
  return replaceLoop(replaced, root.var, (loop) => {
    const whole = [...before, loop, ...finish]
    // At the top, what belongs together stays in one statement, and so in one launch.
    return root === path[0] ? [when(bool(true), whole)] : whole
  })
}

/** A thread's few elements, one after the other in the text: neighbours in memory are accessed as vectors. */
function unrolledWhole(serial: readonly For[]): readonly For[] {
  const count = serial.reduce((n, l) => n * constantExtent(l), 1)
  return count > MOST_UNROLLED
    ? serial
    : serial.map(
        (l): For => (l.mode.kind === 'serial' ? { ...l, mode: { kind: 'unroll', factor: null } } : l),
      )
}

/**
 * Where the targets are, as far as it is loaded and the same for the whole reduction: in registers before it, so that the
 * load is under way with its own. At the end every thread would wait for it.
 */
function loadedEarly(
  body: Body,
  reduce: Reduce,
  root: For,
  path: readonly For[],
  names: Names,
): { readonly early: Body; readonly targets: readonly Load[] } {
  const written = writesOf(body)
  const inside = new Set(path.slice(path.indexOf(root)).map((l) => l.var))
  const registers = new Map<string, { readonly buffer: Buffer; readonly value: Expr }>()
  const isProtected = conditionsAround([root], reduce).length > 0
  const moved = (x: Expr): Expr => {
    if (isProtected) return x
    if (x.kind !== 'load' || written.has(x.buffer) || mentionsSome(x, inside))
      return withChildren(
        x,
        // What a condition protects is read under it only.
        children(x).map((c, k) => (isLazy(x) && k > 0 ? c : moved(c))),
      )
    const key = keyOf(x)
    const known = registers.get(key) ?? { buffer: local(names.fresh(`${x.buffer}_at`), x.dtype), value: x }
    registers.set(key, known)
    return load(known.buffer.name, [int(0)], x.dtype)
  }
  const targets = reduce.targets.map((t) => load(t.buffer, t.index.map(moved), t.dtype, t.span))
  const early = [...registers.values()].flatMap(({ buffer, value }) => [
    alloc(buffer),
    store(buffer.name, [int(0)], value),
  ])
  return { early, targets }
}

/** Which part each loop plays. @throws SptError `schedule/cross-thread` */
function rolesOf(reduce: Reduce, path: readonly For[]): Roles {
  // A reduction loop on blocks stays outside: its blocks meet through the atomic update at the end.
  const outside = outsideLifetime(reduce, path)
  const first = path.findIndex((l, k) => k >= outside && l.reduce && !boundIndex(l, 'block'))
  const root = path[first]!
  const inside = path.slice(first)
  const depends = (l: For): boolean => elementChanges(reduce, l)
  // Neighbours in thread.x are neighbours in rank.
  const folded = inside
    .filter((l) => l.reduce && onThreads(l))
    .sort((a, b) => Number(onX(a)) - Number(onX(b)))
  const hidden = new Set(inside.map((l) => l.var))
  for (const l of inside) if (!l.reduce && depends(l)) hidden.delete(l.var)
  // Conditions on reduction loops decide what is combined, not where; the others decide what is updated at the end.
  const spatial = inside.filter((l) => !l.reduce && depends(l))
  // An `if` inside may say that the element is there: it is asked again where the element is updated.
  const ifs = hoistable(
    conditionsAround([root], reduce),
    inside.filter((l) => hidden.has(l.var)),
    [root],
  )
  const exists = ifs.flatMap((c) => (c.absent === undefined ? [] : [c.cond]))
  const conditions = [
    ...spatial.flatMap((l) => l.guards).filter((g) => !mentionsSome(g, hidden)),
    ...ifs.map((c) => c.cond),
  ]
  const kept = spatial.map((l): For => ({ ...l, guards: [] }))
  const serial = kept.filter((l) => !onThreads(l))
  const threads = kept.filter(onThreads)
  const around = path.slice(0, first)
  for (const l of inside)
    if (l.reduce && depends(l)) refuse(l, `the element that is reduced into changes with ${l.name}`)
  for (const l of serial)
    if (l.extent.kind !== 'const')
      refuse(
        l,
        `loop ${l.name} inside the reduction has no constant extent, so a thread cannot keep its share in registers`,
      )
  return {
    root,
    folded,
    serial,
    threads,
    others: [...around.filter(onThreads), ...threads],
    conditions,
    alone: reduce.init && !reduce.atomic && around.every((l) => !l.reduce),
    startsApart: reduce.init && around.every((l) => !l.reduce) && ifs.some((c) => c.absent === undefined),
    exists: exists.length > 0 ? all(exists) : undefined,
  }
}

/** Whether other statements of the loop use what is reduced into. */
const combinesElsewhere = (root: For, reduce: Reduce): boolean =>
  accessesOf([root]).some((a) => a.stmt !== reduce && reduce.targets.some((t) => t.buffer === a.buffer))

/** The loops on threads no longer reduce into anything that others see. */
function settled(s: Stmt, shares: ReadonlySet<string>): Stmt {
  const visit = (x: Stmt): Stmt => {
    const rebuilt = withBodies(
      x,
      bodiesOf(x).map((b) => mapSame(b, visit)),
    )
    if (rebuilt.kind !== 'for' || !rebuilt.reduce || !onThreads(rebuilt)) return rebuilt
    const own = reductionsOf(rebuilt.body).every((r) => r.reduce.targets.every((t) => shares.has(t.buffer)))
    return own ? stmt({ ...rebuilt, reduce: false }) : rebuilt
  }
  return visit(s)
}

function refuse(loop: For, why: string): never {
  fail({
    code: 'schedule/cross-thread',
    message: `a reduction over threads cannot be completed: ${why}`,
    ...(loop.span ? { span: loop.span } : {}),
    expected:
      'spatial loops inside a reduction over threads that are constant, or bound to threads themselves',
    hint: `move ${loop.name} outside of the reduction, split it by a constant, or bind it to a thread axis`,
  })
}
