/** Choices among schedules as text. */
import type { Doc } from './layout-document.ts'
import type { Branch, Choice } from './nodes.ts'
import type { Printer } from './print-blocks.ts'
import { exprDoc } from './print-expr.ts'
import { optional, scheduleHead } from './print-parts.ts'

export function printChoice(p: Printer, c: Choice): void {
  p.block(c.trivia, true, [scheduleHead(c), ' choose'], () => {
    c.branches.forEach((b, k) => {
      p.item(b.trivia, k === 0, branchDoc(b))
    })
  })
}

function branchDoc(b: Branch): Doc {
  const args = b.args.map((a): Doc => [a.name ? `${a.name.name} = ` : '', exprDoc(a.value)])
  const head: Doc = b.cond ? ['when (', exprDoc(b.cond), ') '] : 'otherwise '
  return [head, b.schedule.name, optional(args)]
}
