/**
 * Invariant reached: between a write of memory that threads of a block share and any later access to it by
 * another thread of the block stands a barrier.
 *
 * Two siblings need one if one writes a shared or global buffer that the other touches and the work of either
 * is spread over threads below this point (a thread-bound loop inside, or a cooperative copy): before it, each
 * thread only sees elements it owns. A serial loop needs one at its end where the next round's writes could
 * overtake this round's reads.
 */
import type { Stmt } from '../ir/loops.ts'
import { accessesOf, type Body, bodiesOf, mapSame, stmt, walkStmts, withBodies } from '../ir/tree.ts'

const BARRIER: Stmt = stmt({ kind: 'barrier' })

export function insertBarriers(body: Body): Body {
  const registers = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'register') registers.add(s.buffer.name)
  })
  const visit = (list: Body): Body => {
    const inner = mapSame(list, (s) => withBodies(s, bodiesOf(s).map(visit)))
    const out: Stmt[] = []
    let since: Stmt[] = []
    for (const s of inner) {
      if (since.some((before) => conflict(before, s, registers))) {
        out.push(BARRIER)
        since = []
      }
      out.push(s)
      since.push(s)
    }
    return out.length === inner.length ? inner : Object.freeze(out)
  }
  const closeLoops = (list: Body): Body =>
    mapSame(list, (s) => {
      const rebuilt = withBodies(s, bodiesOf(s).map(closeLoops))
      if (rebuilt.kind !== 'for' || rebuilt.mode.kind === 'bind') return rebuilt
      return wraps(rebuilt.body, registers) ? stmt({ ...rebuilt, body: [...rebuilt.body, BARRIER] }) : rebuilt
    })
  return closeLoops(visit(body))
}

/** Whether the work of the statement is spread over the threads of a block below it. */
function spreads(s: Stmt): boolean {
  let found = false
  walkStmts([s], (x) => {
    if (x.kind === 'for' && (x.cooperative || (x.mode.kind === 'bind' && x.mode.to.startsWith('thread'))))
      found = true
  })
  return found
}

function conflict(a: Stmt, b: Stmt, registers: ReadonlySet<string>): boolean {
  if (!spreads(a) && !spreads(b)) return false
  const first = accessesOf([a])
  const second = accessesOf([b])
  return first.some(
    (x) =>
      !registers.has(x.buffer) &&
      second.some((y) => y.buffer === x.buffer && (x.mode === 'write' || y.mode === 'write')),
  )
}

/** Whether the end of one round can run into the start of the next. */
function wraps(body: Body, registers: ReadonlySet<string>): boolean {
  if (!body.some((s) => s.kind === 'barrier')) return false
  const firstBarrier = body.findIndex((s) => s.kind === 'barrier')
  const lastBarrier = body.findLastIndex((s) => s.kind === 'barrier')
  const head = body.slice(0, firstBarrier)
  const tail = body.slice(lastBarrier + 1)
  return tail.some((a) => head.some((b) => conflict(a, b, registers)))
}
