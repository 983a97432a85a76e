/** Loop fusion of consecutive loop nests: their bodies run in one loop, in order (`join`). */

import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../../ir/instructions/hardware-axes.ts'
import { writesOf } from '../../../ir/statements/accesses.ts'
import { substituteStmts } from '../../../ir/statements/bindings.ts'
import { findLoop } from '../../../ir/statements/definitions.ts'
import type { For, Kernel2, Reduce, Stmt } from '../../../ir/statements/loops.ts'
import { initsOf, reductionsOf } from '../../../ir/statements/reductions.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkOneNest } from '../../legality/checks.ts'
import { iterationsOf } from '../../legality/loop-dependence.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { gone, primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import { checkSeveral, nestName, placeFor, type TopNest, topNest } from './top-nests.ts'

/**
 * `join (a, b) at io`: consecutive loop nests get common loops down to `io`, a loop of one of them. An iteration of the
 * common loops runs the iteration of `a`, then the same iteration of `b`. The loops of each loop nest are perfectly
 * nested, and the loop nests have the same extents and modes (for example both on `block.x`). A reduction loop of one
 * loop nest becomes a reduction loop of all. The step is illegal if different iterations of the loop nests access
 * common memory, unless all loops in which they conflict are reduction loops and both loop nests only combine, by one
 * reducer.
 */
export const join = primitive({
  word: 'join',
  call: "join(['first', 'second'], 'i')",
  takes: [arg.nests('nests'), 'at', arg.loop('at')],
  given: (nests: readonly string[], at: LoopRef) => ({ nests, at }),
  apply(cx, step) {
    checkSeveral(cx, 'join', step.nests)
    const found = step.nests.map((name) => topNest(cx, name)).sort((a, b) => a.at - b.at)
    const at = cx.loop(step.at)
    const top = at.path[0] ?? at.loop
    if (found.every((m) => m.top !== top))
      cx.refuse('schedule/not-joined', [at.loop], {
        message: `${at.loop.name} is a loop of ${top.nest}, which is not joined`,
        expected: `a loop of ${step.nests.join(' or ')}`,
      })
    const members = found.map((m) => ({ ...m, chain: chainOf(cx, m, at.path.length + 1) }))
    const [first, ...others] = members as [Member, ...Member[]]
    const name = nestName(cx, step.nests, 'joined')
    const bodies = others.map((m) => alike(cx, first, m))
    checkStarts(cx, members)
    checkReductions(cx, members)
    const inner = first.chain.at(-1)!
    const joined = first.chain.reduceRight<readonly Stmt[]>(
      (body, l, k) => [
        stmt<For>({ ...l, nest: name, body, reduce: members.some((m) => m.chain[k]!.reduce) }),
      ],
      [...inner.body, ...bodies.flat()],
    )
    const place = placeFor(cx, members)
    const old = new Set<Stmt>(members.map((m) => m.top))
    const body = cx.kernel.body.flatMap((s, k) => (k === place ? joined : old.has(s) ? [] : [s]))
    checkIterations(cx, { ...cx.kernel, body }, first, members)
    const into = first.chain.map((l) => `${name}.${l.name}`)
    return { body, gone: members.flatMap((m) => m.chain.map((l, k) => gone(l, 'merged', [into[k]!]))) }
  },
})

interface Member extends TopNest {
  readonly chain: readonly For[]
}

function chainOf(cx: Context, { name, top }: TopNest, depth: number): readonly For[] {
  const chain: For[] = []
  for (let s: Stmt | undefined = top; chain.length < depth; s = (s as For).body[0]) {
    const outer = chain.at(-1)
    if (s?.kind !== 'for' || (outer && outer.body.length > 1))
      return cx.refuse('schedule/not-perfect', chain, {
        message: `${name} has no ${depth} perfectly nested loops`,
        hint: 'choose an outer loop, or reorder',
      })
    checkOneNest(cx, s, 'join')
    chain.push(s)
  }
  return chain
}

/** The body of a loop nest in terms of the first one's loops, which have the same iterations. */
function alike(cx: Context, first: Member, { name, chain }: Member): readonly Stmt[] {
  const map = new Map<string, Expr>(chain.map((l, k) => [l.var, variable(first.chain[k]!.var)]))
  const here = (e: Expr): Expr => substitute(e, map)
  for (const [k, l] of chain.entries()) {
    const own = first.chain[k]!
    const other = (what: string, hint?: string): never =>
      cx.refuse('schedule/not-alike', [own, l], {
        message: `${own.name} of ${first.name} and ${l.name} of ${name} ${what}`,
        expected: 'loops of the same extent, conditions and kind (serial, or bound to the same axis)',
        ...(hint && { hint }),
      })
    if (!sameExpr(own.extent, here(l.extent)))
      other('have different extents', 'split one of them, so that both go over the same tiles')
    if (
      own.guards.length !== l.guards.length ||
      own.guards.some((g, n) => keyOf(g) !== keyOf(here(l.guards[n]!)))
    )
      other('run under different conditions', 'join at a loop outside of them')
    if (
      !isPlain(own) ||
      boundIndex(own, 'block') !== boundIndex(l, 'block') ||
      boundIndex(own, 'thread') !== boundIndex(l, 'thread') ||
      !isPlain(l)
    )
      other(
        'are of different kinds',
        'join serial loops, or loops bound to the same axis, and apply the other steps afterwards',
      )
  }
  return substituteStmts(chain.at(-1)!.body, map)
}

const isPlain = ({ mode }: For): boolean =>
  mode.kind === 'serial' || (mode.kind === 'bind' && mode.cluster === undefined)

/** The initialisation would move before the loop, and would not erase the results of an earlier loop nest. */
function checkStarts(cx: Context, members: readonly Member[]): void {
  for (const [k, m] of members.entries())
    for (const { reduce, path } of reductionsOf([m.top])) {
      const again = reduce.init && m.chain.some((l) => l.reduce && path.includes(l))
      const earlier = members
        .slice(0, k)
        .find((o) => reduce.targets.some((t) => writesOf([o.top]).has(t.buffer)))
      if (again && earlier)
        cx.refuse('schedule/order-matters', [earlier.top, m.top], {
          message: `${m.name} would reset elements of ${reduce.targets[0]!.buffer} that ${earlier.name} wrote`,
          hint: 'keep separate loop nests',
        })
    }
}

/** The initialisation of sums would move before a loop that is a reduction loop of another loop nest. */
function checkReductions(cx: Context, members: readonly Member[]): void {
  const reduces = (k: number): Member | undefined => members.find((m) => m.chain[k]!.reduce)
  for (const m of members)
    for (const { reduce, path } of initsOf([m.top])) {
      const k = m.chain.findIndex((l, n) => !l.reduce && reduces(n) && path.includes(l))
      if (k < 0) continue
      const { buffer } = reduce.targets[0]!
      cx.refuse('schedule/starts-in-reduction', [m.chain[k]!, reduces(k)!.chain[k]!], {
        message: `${m.name} would reset ${buffer} within ${m.chain[k]!.name}, which is a reduction loop of ${reduces(k)!.name}`,
        hint: `cache_write ${buffer} at the loop first`,
      })
    }
}

/** Only combinations in a reduction loop of both may use common elements in different iterations. */
function checkIterations(cx: Context, joined: Kernel2, first: Member, members: readonly Member[]): void {
  for (const own of first.chain) {
    const { dependence, combining } = iterationsOf(joined, findLoop(joined.body, own.var)!.loop)
    const meets = (r: Reduce): boolean =>
      r.targets.some((t) => members.filter((m) => writesOf([m.top]).has(t.buffer)).length > 1)
    const shared = combining.filter(meets)
    const unsafe = own.mode.kind === 'serial' ? !own.reduce : shared.some((r) => !r.atomic)
    const where = shared.length > 0 && unsafe ? shared[0]!.targets[0]!.buffer : undefined
    if (dependence || where !== undefined)
      cx.refuse(
        'schedule/order-matters',
        members.map((m) => m.chain[first.chain.indexOf(own)]!),
        {
          message: dependence
            ? `join would change the order of ${own.name}: ${dependence.reason}`
            : `different iterations of ${own.name} would use the same elements of ${where}`,
          expected: 'loop nests that access the same elements in the same iterations, by the same index',
        },
      )
  }
}
