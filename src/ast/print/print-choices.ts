/** Choices among schedules as text. */

import { quotedPath } from '../imports/resolve-path.ts'
import type { Branch, Dispatch, ScheduleCall } from '../nodes/nodes.ts'
import type { Doc } from './layout-document.ts'
import type { Printer } from './print-blocks.ts'
import { exprDoc } from './print-expr.ts'
import { optional, scheduleHead } from './print-parts.ts'

export function printChoice(p: Printer, c: Dispatch): void {
  if (c.table) {
    p.item(c.trivia, true, [scheduleHead(c), ' choose from ', quotedPath(c.table.value)])
    return
  }
  p.block(c.trivia, true, [scheduleHead(c), c.isExtension ? ' extends' : ' choose'], () => {
    c.branches.forEach((b, k) => {
      const head: Doc = b.cond ? ['when (', exprDoc(b.cond), ') '] : 'otherwise '
      if (b.isFastest) p.block(b.trivia, k === 0, [head, 'fastest'], () => printCalls(p, b))
      else p.item(b.trivia, k === 0, [head, callDoc(b.calls[0]!)])
    })
  })
}

function printCalls(p: Printer, { calls }: Branch): void {
  calls.forEach((c, k) => {
    p.item(c.trivia, k === 0, callDoc(c))
  })
}

function callDoc({ schedule, args }: ScheduleCall): Doc {
  const list = args.map((a): Doc => [a.name ? `${a.name.name} = ` : '', exprDoc(a.value)])
  return [schedule.name, optional(list)]
}
