/** Parsing of expressions over the sizes of a kernel. */
import { withSources } from '../../ast/diagnostics/diagnostic.ts'
import { parseExpression } from '../../ast/parse/parse.ts'
import { Report } from '../../elaborate/diagnostics.ts'
import { argumentOver, parameters } from '../../elaborate/schedules/schedule-params.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { overSizes } from '../../schedule/steps/step-arguments.ts'

/** Parses an expression as in schedules. Throws SptError `parse/…` and `check/…`, with spans in a source called `sizes`. */
export function parseSizes(text: string, { params }: Kernel1): Expr {
  const source = { name: 'sizes', text }
  const report = new Report()
  const sizes = new Set(params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])))
  return withSources({ sources: new Map([[source.name, source]]) }, () => {
    const e = parseExpression(source)
    argumentOver(parameters(sizes, 'sizes of the kernel', [], report), e, 'integer', report)
    report.finish()
    return overSizes(e, { values: new Map(), constant: () => 0 })
  })
}
