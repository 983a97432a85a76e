/** Horizontal fusion: several loop nests become one launch (`merge`). */

import { boundIndex } from '../../../ir/instructions/hardware-axes.ts'
import { writesOf } from '../../../ir/statements/accesses.ts'
import type { Fill, For, Reduce, Stmt } from '../../../ir/statements/loops.ts'
import { fill } from '../../../ir/statements/statement-builders.ts'
import { rewriteStmts, stmt } from '../../../ir/statements/tree.ts'
import { atOnce } from '../../legality/nest-dependence.ts'
import { gone, primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import { startApart } from './merge-disjoint-rows.ts'
import { checkSeveral, launchOf, nestName, placeFor, type TopNest, topNest } from './top-nests.ts'

/**
 * `merge (a, b)`: loop nests on blocks become one launch (horizontal fusion). Their ranges of blocks are consecutive on
 * `block.x`, and the index of a block determines its loop nest; a loop nest of 0 blocks gets an empty range. A loop
 * nest must not use data that another writes, except by updates that are atomic on both sides. Elements that one loop
 * nest initialises and another also updates are filled before the launch, unless formats state that the rows are
 * disjoint.
 */
export const merge = primitive({
  word: 'merge',
  call: "merge('first', 'second')",
  takes: [arg.nests('nests')],
  given: (...nests: string[]) => ({ nests }),
  apply(cx, step) {
    checkSeveral(cx, 'merge', step.nests)
    const members = step.nests.map((name) => memberOf(cx, name))
    const started = startedApart(cx, members)
    checkTogether(cx, members, started)
    const at = placeFor(cx, members)
    const { plain, fills } = withoutInits(cx, started.members, started.settled, at)
    const name = nestName(cx, step.nests, 'merged')
    const merged = launchOf(cx, name, plain, step.span)
    const old = new Set<Stmt>(members.map((m) => m.top))
    return {
      body: cx.kernel.body.flatMap((s, k) => {
        if (k === at) return [...fills, merged]
        return old.has(s) ? [] : [s]
      }),
      gone: members.flatMap((m) => m.loops.map((l) => gone(l, 'merged', [`${name}.block`]))),
    }
  },
})

interface Member extends TopNest {
  readonly loops: readonly For[]
}

function memberOf(cx: Context, name: string): Member {
  const only = topNest(cx, name)
  const loops = blockLoops(only.top)
  if (loops.length === 0)
    return cx.refuse('schedule/not-on-blocks', [only.top], {
      message: `no loop of ${name} is bound to a block axis`,
      hint: `bind ${only.top.name} to block.x first`,
    })
  const clustered = loops.find((l) => l.mode.kind === 'bind' && l.mode.cluster)
  if (clustered)
    return cx.refuse('schedule/in-clusters', [clustered], {
      message: `${clustered.name} is bound to blocks of a cluster, and merge does not support clusters`,
      hint: `leave ${name} a separate launch, or out the cluster`,
    })
  return { ...only, loops }
}

const onBlocks = (s: Stmt | undefined): s is For => s?.kind === 'for' && boundIndex(s, 'block') !== undefined

function blockLoops(top: For): readonly For[] {
  const out: For[] = []
  for (let s: Stmt | undefined = top; onBlocks(s); s = s.body[0]) out.push(s)
  return out
}

interface Started {
  readonly members: readonly Member[]
  readonly settled: ReadonlySet<string>
}

/** Loop nests of parts without common rows initialise their own elements, if their blocks have disjoint ones. */
function startedApart(cx: Context, members: readonly Member[]): Started {
  if (members.some((m) => m.loops.some((l) => l.reduce))) return { members, settled: new Set() }
  const { tops, settled } = startApart(
    cx,
    members.map((m) => m.top),
  )
  return { members: members.map((m, k) => ({ ...m, top: tops[k]!, loops: blockLoops(tops[k]!) })), settled }
}

function checkTogether(cx: Context, members: readonly Member[], { settled }: Started): void {
  for (const [k, a] of members.entries())
    for (const b of members.slice(k + 1)) {
      const conflict = atOnce(cx.kernel, a.top, b.top, settled)
      if (!conflict) continue
      const { buffer } = conflict
      const [what, hint] = {
        reads: [`one reads ${buffer}, which the other writes`, 'keep separate launches, or use compute_at'],
        writes: [`both write ${buffer} without a common reducer`, 'keep separate launches'],
        combines: [
          `both combine into ${buffer}`,
          `atomic ${buffer} or combine ${buffer} first, or keep separate launches`,
        ],
      }[conflict.kind] as [string, string]
      const message = `${a.name} and ${b.name} would run concurrently, and ${what}`
      cx.refuse('schedule/nests-meet', [a.top, b.top], { message, hint })
    }
}

/**
 * Replaces initialisations by fills before the launch, if a loop nest cannot initialise elements any more: another loop
 * nest updates the elements concurrently, or blocks of the merged loop combine.
 */
function withoutInits(
  cx: Context,
  members: readonly Member[],
  settled: ReadonlySet<string>,
  at: number,
): { plain: readonly Member[]; fills: readonly Fill[] } {
  const combining = members.some((m) => m.loops.some((l) => l.reduce))
  const fills = new Map<string, Fill>()
  const global = new Set(cx.kernel.buffers.map((b) => b.name))
  const plain = members.map((m) => {
    const others = members.filter((o) => o !== m)
    const shared = (r: Reduce): boolean =>
      r.targets.some((t) => global.has(t.buffer) && !settled.has(t.buffer)) &&
      (combining || others.some((o) => r.targets.some((t) => writesOf([o.top]).has(t.buffer))))
    const [top] = rewriteStmts([m.top], {
      stmt: (s) => {
        if (s.kind !== 'reduce' || !s.init || !shared(s)) return undefined
        for (const [k, t] of s.targets.entries()) {
          checkUnwritten(cx, t.buffer, members, at)
          fills.set(t.buffer, fill(t.buffer, s.reducer.identity[k]!))
        }
        return stmt({ ...s, init: false })
      },
    })
    return { ...m, loops: blockLoops(top as For) }
  })
  return { plain, fills: [...fills.values()] }
}

function checkUnwritten(cx: Context, buffer: string, members: readonly Member[], at: number): void {
  const inside = new Set(members.map((m) => m.name))
  const before = cx.kernel.body
    .slice(0, at)
    .find((s) => !(s.kind === 'for' && inside.has(s.nest)) && writesOf([s]).has(buffer))
  if (before)
    cx.refuse('schedule/order-matters', before.kind === 'for' ? [before] : [], {
      message: `${buffer} would be initialised again, after a write by an earlier statement`,
      hint: 'leave them separate launches',
    })
}
