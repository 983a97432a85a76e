/** Elaboration of formats: AST → `Format`, `Composition` or `FormatFamily`. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { AnyFormat, OrderedFormat } from '../../ir/formats/format.ts'
import type { Report } from '../diagnostics.ts'
import { declare, nothingDeclared } from '../kernels/kernel-names.ts'
import { elaborateRules } from './compositions.ts'
import { elaborateDescription } from './descriptions.ts'
import { listOver, writtenOut } from './dimension-lists.ts'
import { familyOf } from './families.ts'
import { declareFormatParams, givenOf, numbersOf } from './format-params.ts'
import type { FindFormat } from './format-uses.ts'

/** Returns the format; null after a reported error. `find` returns the formats that a composition names. */
export function elaborateFormat(f: Ast.Format, find: FindFormat, report: Report): AnyFormat | null {
  const write = (order: number, to: Report): OrderedFormat | null => {
    const plain = writtenOut(f, order, to)
    return plain && ofOneOrder(plain, (name) => find(name, to), to)
  }
  if (!listOver(f)) return write(f.over.length, report)
  const over = f.over.map((o) => ({ name: o.name, list: o.all === true }))
  return familyOf({ name: f.name.name, over, span: f.name.span }, write, report)
}

function ofOneOrder(f: Ast.Format, find: FindFormat, report: Report): OrderedFormat | null {
  const before = report.count
  const d = nothingDeclared(report)
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
