/**
 * Reduction across threads, by warp shuffles and shared memory. Invariant reached: no reduction loop is bound to threads, except around
 * atomic updates.
 * Each thread reduces its part into registers. Lanes that can exchange registers (`Lanes`) combine their partial results first. Other
 * threads combine them in shared memory by recursive halving (Harris, "Optimizing parallel reduction in CUDA"), until one remains or lanes
 * can exchange again. One thread updates the target (`combine-partials.ts`). `barriers.ts` inserts the barriers later.
 */

import { conditionsAround, hoistable } from '../../analysis/dependence/loop-writes.ts'
import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { all, bool, type Expr, int, type Load, load } from '../../ir/expressions/expr.ts'
import { children, isLazy, mentionsSome, withChildren } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { mapSame } from '../../ir/lists.ts'
import { accessesOf, writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { replaceLoop } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import {
  combineInto,
  elementChanges,
  reductionsOf,
  scattersElements,
  storeIdentity,
} from '../../ir/statements/reductions.ts'
import { alloc, local, store, when } from '../../ir/statements/statement-builders.ts'
import { type Body, mapBodies, replaceStmt, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { combinePartials, nest, type Roles, registersAt } from './combine-partials.ts'
import { laneWidth, onX, outsideLifetime } from './reduction-expansion.ts'
import { startsOf } from './reduction-initialization.ts'

/** Target properties for cross-thread reductions, as in `LowerOptions`. */
interface Exchange {
  readonly lanes?: number | undefined
  readonly together?: boolean | undefined
}

export function reduceAcrossThreads(kernel: Kernel2, exchange: Exchange = {}): Kernel2 {
  const names = namesOf(kernel)
  const shares = new Set<string>()
  let body: Body = kernel.body
  for (;;) {
    const reduction = latest(body, shares)
    if (!reduction) break
    body = rewrite(body, reduction.reduce, reduction.path, {
      names,
      inRegisters: new Set([...allocatedNames(body, 'register'), ...registersOf(kernel)]),
      done: shares,
      exchange,
    })
  }
  if (shares.size === 0) return kernel
  return { ...kernel, body: body.map((s) => settled(s, shares)) }
}

/** Maximum shared memory in bytes to combine all elements at once (`AT_ONCE`), and size of the largest element (`SHARE_BYTES`). */
const AT_ONCE = 16 * 1024
const SHARE_BYTES = 8

/** Maximum number of elements of a thread's partial results whose loop is unrolled. */
const MOST_UNROLLED = 8

const registersOf = ({ buffers }: Kernel2): readonly string[] =>
  [...buffers.values()].filter((b) => b.scope === 'register').map((b) => b.name)

const extent = (l: For): Expr => l.extent
const constantExtent = (l: For): number => (l.extent.kind === 'const' ? l.extent.value : 1)

const onThreads = (l: For): boolean => boundIndex(l, 'thread') !== undefined

/**
 * Returns the last reduction over threads that is not rewritten yet. The pass works backwards, because statements inserted after a loop
 * must precede those of earlier rewrites, and the first reduction keeps its initialisation.
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
  /** Names of buffers of which each thread has a private copy. */
  readonly inRegisters: ReadonlySet<string>
  /** Names of the buffers that hold partial results. */
  readonly done: Set<string>
  readonly exchange: Exchange
}

function rewrite(body: Body, reduce: Reduce, path: readonly For[], context: Context): Body {
  const { names, done } = context
  const { lanes = 1, together } = context.exchange
  const roles = rolesOf(reduce, path)
  const { serial, others, folded, root } = roles
  // The target starts at the identity before the loop if other statements combine into it, or if a condition may exclude it.
  const starts = roles.startsApart || (roles.alone && combinesElsewhere(root, reduce))
  const first = starts ? startsOf(reduce, path.slice(path.indexOf(root)), names, roles.exists) : []
  if (!first) reject(root, `its elements cannot be started before ${root.name}`)
  const room = (scope: Buffer['scope'], shape: readonly Expr[], k: number): Buffer => {
    const { buffer, dtype } = reduce.targets[k]!
    return local(names.fresh(`${buffer}_${scope === 'shared' ? 'shares' : 'share'}`), dtype, shape, scope)
  }
  const registers = reduce.targets.map((_, k) => room('register', serial.map(extent), k))
  const total = folded.reduce((n, l) => n * constantExtent(l), 1)
  const width = laneWidth(body, reduce, folded.at(-1)!, lanes)
  // Number of groups of lanes, and whether a second exchange can combine them.
  const groups = total / width
  const lanesAgain =
    groups > 1 && laneWidth(body, reduce, folded.at(-1)!, groups) === groups && groups <= width
  // All elements are combined at once if this needs little shared memory, otherwise one by one.
  const count = [...serial, ...others].reduce((n, l) => n * constantExtent(l), groups)
  const atOnce = count * SHARE_BYTES * reduce.targets.length <= AT_ONCE
  const rows = atOnce ? serial.map(extent) : []
  // Neighbouring threads use neighbouring addresses: the rank is the last dimension if thread.x is reduced, otherwise the first.
  const rankFirst = !folded.some(onX)
  const places = others.map(extent)
  const shape = rankFirst ? [int(groups), ...places, ...rows] : [...rows, ...places, int(groups)]
  const scratch = groups > 1 ? reduce.targets.map((_, k) => room('shared', shape, k)) : []
  // The partial results start at the identity and replace the target.
  const start = nest(serial, names, (map) => storeIdentity(reduce, registersAt(registers, roles, map)))
  const registerReduce = combineInto(reduce, registersAt(registers, roles), reduce.values)
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
  const replaced = replaceStmt(body, reduce, () => registerReduce)
  return replaceLoop(replaced, root.var, (loop) => {
    const whole = [...before, loop, ...finish]
    // At the top level, the statements stay in one statement, and so in one launch.
    return root === path[0] ? [when(bool(true), whole)] : whole
  })
}

/** Unrolls the loops over a thread's elements if they are few, so that neighbouring elements are accessed as vectors. */
function unrolledWhole(serial: readonly For[]): readonly For[] {
  const count = serial.reduce((n, l) => n * constantExtent(l), 1)
  return count > MOST_UNROLLED
    ? serial
    : serial.map(
        (l): For => (l.mode.kind === 'serial' ? { ...l, mode: { kind: 'unroll', factor: null } } : l),
      )
}

/**
 * Loads the loop-invariant parts of the target's address into registers before the reduction. The latency of these loads then overlaps the
 * loads of the reduction, instead of delaying every thread at the end.
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
        // Operands that a condition protects stay under this condition.
        children(x).map((c, k) => (isLazy(x) && k > 0 ? c : moved(c))),
      )
    const key = keyOf(x)
    const element = registers.get(key) ?? { buffer: local(names.fresh(`${x.buffer}_at`), x.dtype), value: x }
    registers.set(key, element)
    return load(element.buffer.name, [int(0)], x.dtype)
  }
  const targets = reduce.targets.map((t) => load(t.buffer, t.index.map(moved), t.dtype, t.span))
  const early = [...registers.values()].flatMap(({ buffer, value }) => [
    alloc(buffer),
    store(buffer.name, [int(0)], value),
  ])
  return { early, targets }
}

/** Returns the role of each loop. Throws SptError `schedule/cross-thread` if the reduction cannot be completed. */
function rolesOf(reduce: Reduce, path: readonly For[]): Roles {
  // A reduction loop over blocks stays outside: its blocks combine by the atomic update at the end.
  const outside = outsideLifetime(reduce, path)
  const first = path.findIndex((l, k) => k >= outside && l.reduce && !boundIndex(l, 'block'))
  const root = path[first]!
  const inside = path.slice(first)
  const depends = (l: For): boolean => elementChanges(reduce, l)
  // Loops on thread.x come last, so neighbouring threads have neighbouring ranks.
  const folded = inside
    .filter((l) => l.reduce && onThreads(l))
    .sort((a, b) => Number(onX(a)) - Number(onX(b)))
  const hidden = new Set(inside.map((l) => l.var))
  for (const l of inside) if (!l.reduce && depends(l)) hidden.delete(l.var)
  // Guards of reduction loops decide which values are combined. Guards of spatial loops decide which elements are updated.
  const spatial = inside.filter((l) => !l.reduce && depends(l))
  // An `if` around the reduction may test that the element exists, so it is evaluated again around the update.
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
    if (l.reduce && depends(l)) reject(l, `the element that is reduced into changes with ${l.name}`)
  for (const l of serial)
    if (l.extent.kind !== 'const')
      reject(
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

/** Returns true if other statements of the loop access the targets. */
const combinesElsewhere = (root: For, reduce: Reduce): boolean =>
  accessesOf([root]).some((a) => a.stmt !== reduce && reduce.targets.some((t) => t.buffer === a.buffer))

/** Changes reduction loops on threads to spatial loops if all their reductions go into private partial results. */
function settled(s: Stmt, shares: ReadonlySet<string>): Stmt {
  const visit = (x: Stmt): Stmt => {
    const rebuilt = mapBodies(x, (b) => mapSame(b, visit))
    if (rebuilt.kind !== 'for' || !rebuilt.reduce || !onThreads(rebuilt)) return rebuilt
    const isInShares = reductionsOf(rebuilt.body).every((r) =>
      r.reduce.targets.every((t) => shares.has(t.buffer)),
    )
    return isInShares ? stmt({ ...rebuilt, reduce: false }) : rebuilt
  }
  return visit(s)
}

function reject(loop: For, why: string): never {
  failAt('schedule/cross-thread', loop.span, {
    message: `a reduction over threads cannot be completed: ${why}`,
    expected:
      'spatial loops inside a reduction over threads that are constant, or bound to threads themselves',
    hint: `move ${loop.name} outside of the reduction, split ${loop.name} by a constant, or bind ${loop.name} to a thread axis`,
  })
}
