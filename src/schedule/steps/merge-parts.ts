/** Expansion of `merge parts of A` into steps on loops. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { iterationsOf } from '../../ir/coordinates/stage1-tree.ts'
import { labelled } from '../../ir/formats/format-tables.ts'
import type { Program } from '../names/part-names.ts'
import { iterationsOver, partsOf } from '../names/parts.ts'
import { refuseAt } from '../refusals.ts'
import type { LoopStep } from './step-data.ts'

interface MergeParts {
  readonly buffer: { readonly name: string; readonly span?: Span | undefined }
  readonly span?: Span | undefined
}

interface Merge {
  readonly stage: 2
  readonly step: LoopStep
}

/**
 * Returns a `merge` for each iteration over the parts: of its copies that are separate loop nests. Throws
 * `schedule/nothing-to-merge`.
 */
export function mergeParts(step: MergeParts, now: Program): readonly Merge[] {
  const parts = partsOf(now.kernel, step.buffer)
  const labels = parts.map((p) => p.label)
  const isFound = parts.at(-1)!.along !== undefined
  const tops = new Set(now.loops.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))
  const last = labels.at(-1)!
  const copies = isFound ? iterationsOver(parts.at(-1)!, now.kernel) : iterationsOf(now.kernel.body)
  const bases = copies.flatMap(({ name }) =>
    name.endsWith(`_${last}`) ? [name.slice(0, -last.length - 1)] : [],
  )
  const steps = bases.flatMap((base): Merge[] => {
    const nests = labels.map((l) => labelled(base, l)).filter((n) => tops.has(n))
    return nests.length > 1 ? [{ stage: 2, step: { kind: 'merge', nests, span: step.span } }] : []
  })
  if (steps.length > 0) return steps
  return refuseAt('schedule/nothing-to-merge', step, {
    message: `${step.buffer.name} has no two parts with separate loop nests`,
    expected: 'a buffer in several parts, and iterations over each',
  })
}
