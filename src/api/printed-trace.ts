/** The steps of a kernel for people, and for other programs. */
import type { Compilation } from '../run/compile.ts'
import { printCoordStep } from '../schedule/coords/steps.ts'
import type { LoopStep } from '../schedule/steps.ts'

/** A step as JSON carries it: formats by name, those put together in place by their text. */
export type TraceStep =
  | {
      readonly kind: 'as'
      readonly buffer: string
      readonly format: string
      readonly args: readonly (number | string)[]
    }
  | { readonly kind: 'coords'; readonly step: object }
  | { readonly kind: 'loops'; readonly step: LoopStep }

/** As the language writes them. */
export function printedSteps(c: Compilation): string[] {
  let applied = 0
  const coords = c.coordSteps.map((s) =>
    s.kind === 'as' ? `${s.buffer} as ${c.kernel.reformats[applied++]!.format}` : printCoordStep(s),
  )
  return [...coords, ...c.printedLoopSteps]
}

export function traceOf(c: Compilation): TraceStep[] {
  return [
    ...c.coordSteps.map(
      ({ span: _, ...step }): TraceStep =>
        step.kind === 'as' ? { ...step, format: step.format.name } : { kind: 'coords', step },
    ),
    ...c.loopSteps.map(({ span: _, ...step }): TraceStep => ({ kind: 'loops', step: step as LoopStep })),
  ]
}
