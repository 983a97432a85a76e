/**
 * Tiles whose rows come from an index list, inside of reduction loops. Iterations may conflict in an element of the
 * buffer, but never in an element of the tile. In the tile, such loops run over different elements; the write-back
 * combines them again.
 */

import { isPlain, writtenIn } from '../../../analysis/dependence/loop-writes.ts'
import { findLoop, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { type Body, rewriteStmts, stmt } from '../../../ir/statements/tree.ts'
import { usesOf } from '../../legality/buffer-uses.ts'
import { type Footprint, neededBy } from '../../legality/footprint.ts'
import type { LoopRef } from '../../names/loop-ref.ts'
import type { Context } from '../../state/context.ts'
import { refuseScatter } from './cache-write-checks.ts'

export interface Tile {
  /** The context in which the loops of the tile are not reduction loops. */
  readonly cx: Context
  /** The loops of the tile that are reduction loops of the kernel. */
  readonly scattered: readonly For[]
}

/**
 * Returns the kernel in which the loop at `ref` combines into a tile instead of the buffer. Throws
 * `schedule/scattered`.
 */
export function asTile(cx: Context, ref: LoopRef, buffer: string): Tile {
  const { loop } = cx.loop(ref)
  const write = usesOf(loop.body, buffer).find((u) => u.mode === 'write')
  const scattered = write ? neededBy(write).filter((l) => l.reduce) : []
  if (!write || scattered.length === 0) return { cx, scattered: [] }
  const { stmt: writer } = write
  for (const l of scattered) {
    // A reduction that initialises its elements must initialise each element once, and it is unknown here which
    // iteration is first.
    if (writer.kind !== 'reduce' || writer.init || !isPlain(l)) refuseScatter(cx, loop, l, cx.buffer(buffer))
  }
  const vars = new Set(scattered.map((l) => l.var))
  const apart = (body: Body): Body =>
    rewriteStmts(body, {
      stmt: (s) => (s.kind === 'for' && vars.has(s.var) ? stmt<For>({ ...s, reduce: false }) : undefined),
    })
  const body = replaceLoop(cx.kernel.body, loop.var, (l) => stmt<For>({ ...l, body: apart(l.body) }))
  return { cx: cx.on({ ...cx.kernel, body }), scattered }
}

/**
 * Returns the loops that write the tile back, as reduction loops: rows of the tile may be the same element of the
 * buffer.
 */
export const meetingAgain = (print: Footprint, scattered: readonly For[]): Footprint => ({
  ...print,
  loops: print.loops.map((l) => (scattered.some((x) => x.var === l.var) ? { ...l, reduce: true } : l)),
})

/**
 * Throws `schedule/not-one-reduction` if iterations that do not conflict in the targets any more conflict elsewhere.
 */
export function checkOthersApart(cx: Context, loops: readonly For[], body: Body, hint: string): void {
  for (const l of loops) {
    const shared = writtenIn(cx.kernel, findLoop(body, l.var)!.loop).find((w) => !w.disjoint)
    if (shared)
      cx.refuse({
        code: 'schedule/not-one-reduction',
        message: `iterations of ${l.name} also share elements of ${shared.buffer}`,
        loops: [l],
        hint,
      })
  }
}
