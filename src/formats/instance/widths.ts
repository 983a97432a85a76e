/** The widths of a bucket rule. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { Composition, PartRule } from '../../ir/formats/format.ts'
import { type SpanOption, spanOf } from './format-arguments.ts'

const MAX_WIDTH = 2 ** 30

/**
 * Expands widths: `1, 2 .. 2^5` → 1, 2, 4, 8, 16, 32; `3 .. 20` → 3, 6, 12, 20; the end is always included. @throws
 * SptError `format/bucket-widths`
 */
export function bucketWidths(
  rule: Extract<PartRule, { kind: 'bucket' }>,
  composition: Composition,
  constantOf: (e: Expr, what: string) => number,
  site: SpanOption,
): readonly number[] {
  const widths: number[] = []
  const reject = (problem: string): never =>
    fail({
      code: 'format/bucket-widths',
      message: `${composition.name} has buckets of ${problem}`,
      ...spanOf(site.span, rule.span, composition.span),
      expected: `ascending widths from 1 to ${MAX_WIDTH}`,
      hint: '`a .. b` doubles from a up to b; `2^k` is a power',
    })
  for (const w of rule.widths) {
    const base = constantOf(w.value, 'a bucket width')
    const power = w.power === null ? 1 : constantOf(w.power, 'the power of a bucket width')
    const end = base ** power
    const last = widths[widths.length - 1]
    if (!Number.isInteger(end) || end < 1 || end > MAX_WIDTH) reject(`width ${end}`)
    if (w.doubling && last !== undefined) {
      if (end < last) reject(`widths ${last} .. ${end}`)
      for (let next = last * 2; next < end; next *= 2) widths.push(next)
      if (end > last) widths.push(end)
    } else if (last !== undefined && end <= last) reject(`widths ${last}, ${end}`)
    else widths.push(end)
  }
  return widths
}
