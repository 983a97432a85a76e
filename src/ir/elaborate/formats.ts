/** Formats: AST → `Format` or `Composition`. */
import type * as Ast from '../../ast/nodes.ts'
import type { AnyFormat } from '../format.ts'
import { elaborateRules } from './compositions.ts'
import { type Declared, declare } from './declared.ts'
import { elaborateDescription } from './descriptions.ts'
import { declareFormatParams, givenOf, numbersOf } from './format-params.ts'
import type { FindFormat } from './format-uses.ts'
import type { Report } from './report.ts'

/** `find` gives the formats that a composition names. `null` if anything was reported. */
export function elaborateFormat(f: Ast.Format, find: FindFormat, report: Report): AnyFormat | null {
  const before = report.count
  const d: Declared = {
    report,
    params: new Map(),
    axes: new Map(),
    buffers: new Map(),
    broken: new Set(),
    places: new Map(),
    monoid: () => null,
  }
  const params = declareFormatParams(d, f.params)
  for (const o of f.over) declare(d, o, 'dimension')
  const head = { name: f.name.name, params, over: f.over.map((o) => o.name), span: f.name.span }
  if (f.body.kind === 'description') {
    const made = elaborateDescription(f.body, head, d)
    return report.count > before ? null : made
  }
  const parts = elaborateRules(f.body.rules, {
    report,
    what: `format ${head.name}`,
    over: head.over,
    values: numbersOf(params),
    given: givenOf(params),
    find,
  })
  return report.count > before || !parts ? null : { kind: 'composition', ...head, parts }
}
