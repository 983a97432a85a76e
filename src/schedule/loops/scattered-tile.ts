/**
 * Tiles whose rows a list names, inside of reduction loops: iterations may meet in an element of the buffer, and never in
 * one of the tile. Within the tile such loops run over different elements; where it is written back they combine again.
 */

import { isPlain, writtenIn } from '../../analysis/loop-writes.ts'
import { findLoop, replaceLoop } from '../../ir/definitions.ts'
import type { For } from '../../ir/loops.ts'
import { type Body, rewriteStmts, stmt } from '../../ir/tree.ts'
import { usesOf } from '../buffer-uses.ts'
import type { Context } from '../context.ts'
import { type Footprint, neededBy } from '../footprint.ts'
import type { LoopRef } from '../loop-ref.ts'
import { refuseScatter } from './cache-write-checks.ts'

export interface Tile {
  /** Where the loops of the tile are no reduction loops. */
  readonly cx: Context
  /** Those that were. */
  readonly scattered: readonly For[]
}

/** The kernel with what the loop at `ref` combines into a buffer seen as a tile of its own. */
export function asTile(cx: Context, ref: LoopRef, buffer: string): Tile {
  const { loop } = cx.loop(ref)
  const write = usesOf(loop.body, buffer).find((u) => u.mode === 'write')
  const scattered = write ? neededBy(write).filter((l) => l.reduce) : []
  if (!write || scattered.length === 0) return { cx, scattered: [] }
  const { stmt: writer } = write
  for (const l of scattered) {
    // What starts its elements itself starts each once, and here nobody knows where that is.
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

/** The loops that write the tile back: its rows may be one element of the buffer. */
export const meetingAgain = (print: Footprint, scattered: readonly For[]): Footprint => ({
  ...print,
  loops: print.loops.map((l) => (scattered.some((x) => x.var === l.var) ? { ...l, reduce: true } : l)),
})

/** Loops whose iterations no longer meet in the targets do not meet elsewhere. */
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
