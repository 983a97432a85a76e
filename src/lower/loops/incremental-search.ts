/**
 * Strength reduction of searches in loops. Invariant reached: a loop that searches, in every iteration, for a position that only increases
 * continues from the previous position. This takes one binary search before the loop, and one step per segment that is entered.
 */

import { linear } from '../../analysis/integers/linear.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { add, binary, bool, type Expr, int, load, type Search, search } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, someExpr, substitute, walkExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { mapSame } from '../../ir/lists.ts'
import { accessesOf, writesOf } from '../../ir/statements/accesses.ts'
import { boundVarsOf } from '../../ir/statements/bindings.ts'
import { replaceLoop } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import {
  alloc,
  define,
  positionRegister as placeIn,
  store,
  when,
  whenAll,
} from '../../ir/statements/statement-builders.ts'
import type { Body } from '../../ir/statements/tree.ts'
import { exprsOf, mapBodies, rewriteStmts, stmt, walkStmts, withBody } from '../../ir/statements/tree.ts'
import { isWord } from '../../ir/values/dtype.ts'
import { sharesWork } from '../memory/cooperative-copies.ts'
import { segmentEnd } from '../reduce/segment-accumulators.ts'

export function makeSearchesIncremental(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const written = writesOf(kernel.body)
  // Outer loops first; a search that is monotone in two loops is carried by the outer one. Loops on threads with shared work are
  // excluded, because inactive threads would have no position and might not reach the barriers.
  const go = (list: Body, onThreads: boolean): Body =>
    mapSame(list, (s) => {
      const searches = s.kind === 'for' && !(onThreads && sharesWork(s.body))
      const incremental = searches ? incrementalLoop(s, written, names) : undefined
      const next = incremental?.loop ?? s
      const inThread = onThreads || boundIndex(s, 'thread') !== undefined
      const inside = mapBodies(next, (b) => go(b, inThread))
      return incremental ? when(bool(true), [...incremental.before, inside]) : inside
    })
  const body = go(kernel.body, false)
  return withBody(kernel, body)
}

/** A search, and the loop in whose iterations its result increases. */
interface MonotoneSearch {
  readonly search: Search
  readonly inner: For
}

interface IncrementalLoop {
  readonly before: Body
  readonly loop: For
}

function incrementalLoop(loop: For, written: ReadonlySet<string>, names: Names): IncrementalLoop | undefined {
  if (loop.cooperative || !inOrder(loop)) return undefined
  const before: Stmt[] = []
  let body: Body = loop.body
  for (const { search: s, inner } of monotoneSearches(loop, written)) {
    const place = placeIn(names.fresh('place'), s.hi)
    const limit = placeIn(names.fresh('limit'))
    const at = (b: Buffer): Expr => load(b.name, [int(0)])
    const set = (b: Buffer, value: Expr): Stmt => store(b.name, [int(0)], value)
    const first = new Map<string, Expr>([loop.var, inner.var].map((v) => [v, int(0)]))
    // `limit` is the first value of the next segment. The position moves only if the searched value reaches the limit.
    const setLimit = set(limit, segmentEnd(s, at(place)))
    const advance = when(binary('le', at(limit), s.value), [
      set(place, search('next', s.buffer, add(at(place), int(1)), s.hi, s.value)),
      setLimit,
    ])
    before.push(...[place, limit].map(alloc), set(place, substitute(s, first)), setLimit)
    const withIncremental = (list: Body): Body => [
      advance,
      ...rewriteStmts(list, {
        expr: (e) => (e.kind === 'search' && keyOf(e) === keyOf(s) ? at(place) : undefined),
      }),
    ]
    body =
      inner === loop
        ? withIncremental(body)
        : replaceLoop(body, inner.var, (l) => {
            const [first, later] = guardsAround(l, s)
            return stmt({ ...l, guards: first, body: withIncremental(whenAll(later, l.body)) })
          })
  }
  return before.length > 0 ? { before, loop: stmt({ ...loop, body }) } : undefined
}

/** Splits the guards of a loop before the first guard that contains the search. The second list moves into the body. */
function guardsAround(l: For, s: Search): readonly [readonly Expr[], readonly Expr[]] {
  const searches = (g: Expr): boolean => someExpr(g, (e) => e.kind === 'search' && keyOf(e) === keyOf(s))
  const at = l.guards.findIndex(searches)
  return at < 0 ? [l.guards, []] : [l.guards.slice(0, at), l.guards.slice(at)]
}

const inOrder = (l: For): boolean => l.mode.kind === 'serial' || l.mode.kind === 'unroll'

/** Returns the searches in the body whose result never decreases, along `loop` alone or along a loop directly inside it as well. */
function monotoneSearches(loop: For, written: ReadonlySet<string>): readonly MonotoneSearch[] {
  const bound = boundVarsOf(loop.body)
  const inside = loopsIn(loop.body)
  const out = new Map<string, MonotoneSearch>()
  walkStmts(loop.body, (s) => {
    for (const e of exprsOf(s))
      walkExpr(e, (x) => {
        if (x.kind !== 'search' || x.method !== 'upper' || out.has(keyOf(x))) return
        const loopVars = [...freeVars(x)].filter((v) => bound.has(v))
        const inner =
          loopVars.length === 0 ? loop : inside.find((l) => loopVars.length === 1 && l.var === loopVars[0])
        if (inner && isMonotone(x, loop, inner) && isReadOnly(x, written))
          out.set(keyOf(x), { search: x, inner })
      })
  })
  return [...out.values()]
}

/** Loops directly inside, or under conditions: an iteration that skips the loop does not move the position, and later ones catch up. */
const loopsIn = (body: Body): readonly For[] =>
  body.flatMap((s) =>
    s.kind === 'for' && inOrder(s) && !s.cooperative
      ? [s]
      : s.kind === 'if'
        ? [...loopsIn(s.then), ...loopsIn(s.else)]
        : [],
  )

/** Returns true if the searched value increases from iteration to iteration, and the range of the search is invariant. */
function isMonotone(s: Search, loop: For, inner: For): boolean {
  const varies = (e: Expr): boolean => mentions(e, loop.var) || mentions(e, inner.var)
  if (varies(s.lo) || varies(s.hi) || !isWord(s.value.dtype)) return false
  const step = new Map<string, number>()
  for (const { term, coefficient } of linear(s.value).terms.values()) {
    if (!varies(term)) continue
    if (term.kind !== 'var' || coefficient < 0) return false
    step.set(term.name, coefficient)
  }
  const outer = step.get(loop.var) ?? 0
  if (inner === loop) return outer > 0
  const { extent } = inner
  return extent.kind === 'const' && outer >= (step.get(inner.var) ?? 0) * (extent.value - 1) && outer > 0
}

/** Returns true if the launch writes neither the searched array nor the bounds of the search. */
const isReadOnly = (s: Search, written: ReadonlySet<string>): boolean =>
  accessesOf([define('', s)]).every((a) => !written.has(a.buffer))
