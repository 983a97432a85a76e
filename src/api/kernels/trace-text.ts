/** The steps of a kernel as text, and as JSON. */
import { useText } from '../../formats/instance/format-arguments.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { printCoordStep } from '../../schedule/coordinates/steps.ts'
import type { LoopStep } from '../../schedule/steps/step-data.ts'

/** A step in JSON; formats are given by name or source. */
export type TraceStep =
  | {
      readonly kind: 'as'
      readonly buffer: string
      readonly format: string
      readonly args: readonly (number | string)[]
      readonly live?: 'live' | 'live in place' | undefined
      readonly capacity?: Expr | readonly Expr[] | undefined
      readonly total?: Expr | readonly Expr[] | undefined
      readonly for?: readonly string[] | undefined
    }
  | { readonly kind: 'coords'; readonly step: object }
  | { readonly kind: 'loops'; readonly step: LoopStep }

const roomText = (x: Expr | readonly Expr[]): string =>
  'kind' in x ? printExpr1(x) : `(${x.map((e) => printExpr1(e)).join(', ')})`

export const printedSteps = (c: Compilation): string[] => c.inOrder(printedCoordSteps(c), c.printedLoopSteps)

/** The steps on coordinates in `.spt`, which determine storage. */
export function printedCoordSteps(c: Compilation): string[] {
  let applied = 0
  return c.coordSteps.map((s) => {
    if (s.kind !== 'as') return printCoordStep(s)
    // A format built at run time is not among the kernel's formats.
    const format = s.live ? useText(s.format, s.args) : c.kernel.reformats[applied++]!.format
    const capacity = s.capacity ? ` capacity ${roomText(s.capacity)}` : ''
    const total = s.total ? ` capacity ${roomText(s.total)} in all` : ''
    const carried = s.for?.length ? ` for ${s.for.join(', ')}` : ''
    return `${s.buffer} as ${format}${s.live ? ` ${s.live}${capacity}${total}${carried}` : ''}`
  })
}

export function traceOf(c: Compilation): TraceStep[] {
  const coords = c.coordSteps.map(
    ({ span: _, ...step }): TraceStep =>
      step.kind === 'as' ? { ...step, format: step.format.name } : { kind: 'coords', step },
  )
  const loops = c.loopSteps.map(
    ({ span: _, ...step }): TraceStep => ({ kind: 'loops', step: step as LoopStep }),
  )
  return c.inOrder(coords, loops)
}
