/**
 * Invariant reached: between a write of memory that threads of a block share and any access to it by another
 * thread of the block stands a barrier.
 *
 * Siblings get one where the later touches what the earlier may have left to another thread (`owners.ts`). A
 * serial loop gets one at its end where a round may touch what another thread touches in the next one.
 */
import { freeVars, mentions, sameExpr, type ThreadAxis } from '../ir/expr.ts'
import { lanesIn } from '../ir/lanes.ts'
import { linear } from '../ir/linear.ts'
import type { For, Stmt } from '../ir/loops.ts'
import {
  accessesOf,
  type Body,
  type BufferAccess,
  bodiesOf,
  mapSame,
  stmt,
  walkStmts,
  withBodies,
} from '../ir/tree.ts'
import { type Block, mayMeet } from './owners.ts'

const barrier = (global: boolean): Stmt => stmt(global ? { kind: 'barrier', global } : { kind: 'barrier' })

/** `indptr`: buffers that are known to be monotone. */
export function insertBarriers(body: Body, indptr: ReadonlySet<string>): Body {
  const registers = new Set<string>()
  const shared = new Set<string>()
  const axes = new Set<ThreadAxis>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'register') registers.add(s.buffer.name)
    if (s.kind === 'alloc' && s.buffer.scope === 'shared') shared.add(s.buffer.name)
    const axis = threadAxis(s)
    if (axis) axes.add(axis)
  })
  const lanes = lanesIn(body)
  if (lanes.count > 1) axes.add('thread.x')
  return axes.size === 0 ? body : between(body, { axes: [...axes], registers, shared, indptr, lanes })
}

function threadAxis(s: Stmt): ThreadAxis | undefined {
  return s.kind === 'for' && s.mode.kind === 'bind' && s.mode.to.startsWith('thread') ? s.mode.to : undefined
}

function between(list: Body, block: Block): Body {
  const inner = mapSame(list, (s) => {
    if (s.kind === 'for' && s.mode.kind === 'instr') return s
    const axis = threadAxis(s)
    const inside = axis ? { ...block, axes: block.axes.filter((a) => a !== axis) } : block
    const rebuilt = withBodies(
      s,
      bodiesOf(s).map((b) => between(b, inside)),
    )
    return rebuilt.kind === 'for' && rebuilt.mode.kind !== 'bind' ? closed(rebuilt, inside) : rebuilt
  })
  const out: Stmt[] = []
  let since: Stmt[] = []
  for (const s of inner) {
    const met = since.flatMap((before) => meetings([before], [s], block))
    if (met.length > 0) {
      out.push(barrierFor(met, block))
      since = []
    }
    out.push(s)
    since.push(s)
  }
  return out.length === inner.length ? inner : Object.freeze(out)
}

/** The buffers in which work of `a` may meet work of `b` in another thread. */
function meetings(
  a: Body,
  b: Body,
  block: Block,
  apart: (x: BufferAccess, y: BufferAccess) => boolean = () => false,
): readonly string[] {
  const second = accessesOf(b)
  return accessesOf(a).flatMap((x) =>
    second.some((y) => mayMeet(x, y, block) && !apart(x, y)) ? [x.buffer] : [],
  )
}

/** Whether two rounds of a loop touch different elements: one index is the round's number, or tells it. */
const ofOneRound =
  (loop: For) =>
  (x: BufferAccess, y: BufferAccess): boolean =>
    x.buffer === y.buffer &&
    x.index.some((e, k) => {
      const { terms } = linear(e)
      const other = y.index[k]
      return (
        terms.size === 1 &&
        freeVars(e).size === 1 &&
        mentions(e, loop.var) &&
        isVar(terms) &&
        other &&
        sameExpr(e, other)
      )
    })

const isVar = (terms: ReturnType<typeof linear>['terms']): boolean =>
  [...terms.values()].every((t) => t.term.kind === 'var')

const barrierFor = (met: readonly string[], block: Block): Stmt =>
  barrier(met.some((b) => !block.shared.has(b)))

/** The loop, with a barrier at its end where one round may meet the next. */
function closed(loop: For, block: Block): For {
  // Threads that share the rounds out among themselves touch what they touch in one round only.
  if (loop.cooperative) return loop
  const first = loop.body.findIndex((s) => s.kind === 'barrier')
  const last = loop.body.findLastIndex((s) => s.kind === 'barrier')
  // Seen from two rounds, the loop's own variable has two values: it is part of the paths.
  const round = (body: Body): Body => [{ ...loop, body }]
  const tail = round(loop.body.slice(last + 1))
  const head = round(first < 0 ? loop.body : loop.body.slice(0, first))
  const met = meetings(tail, head, block, ofOneRound(loop))
  return met.length > 0 ? stmt({ ...loop, body: [...loop.body, barrierFor(met, block)] }) : loop
}
