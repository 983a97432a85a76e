/** Elaboration of formats: AST → `Format`, `Composition` or `FormatFamily`. */

import { fail, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { quantity } from '../../ast/parse/checks.ts'
import type { AnyFormat, FormatFamily, OrderedFormat } from '../../ir/formats/format.ts'
import { Report } from '../diagnostics.ts'
import { declare, nothingDeclared } from '../kernels/kernel-names.ts'
import { elaborateRules } from './compositions.ts'
import { elaborateDescription } from './descriptions.ts'
import { BEYOND, MAX_COPIES } from './dimension-list-names.ts'
import { listOver, writtenOut } from './dimension-lists.ts'
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

// Formats for tensors of any order, whose text is expanded when the order is known.

/**
 * The number of list dimensions in the first trial expansion of a text, and of further trials if the text names more.
 */
const TRIED = 4
const MORE = 4

type Head = Pick<FormatFamily, 'name' | 'over' | 'span'>

/**
 * Returns the format for any order. `write` returns the format for one order; null after a reported error. The text is
 * expanded for a trial order here, so that errors in the text are found early. Returns null after a reported error.
 */
export function familyOf(
  head: Head,
  write: (order: number, report: Report) => OrderedFormat | null,
  report: Report,
): FormatFamily | null {
  const single = head.over.filter((o) => !o.list).length
  let tried: OrderedFormat | null = null
  let trial = new Report()
  for (let length = TRIED; length <= TRIED + MORE && !tried; length++) {
    trial = new Report()
    tried = write(single + length, trial)
    if (trial.list.some((d) => d.code !== BEYOND && d.code !== 'format/order')) break
  }
  for (const d of trial.list) report.error(d)
  if (!tried) return null
  const made = new Map<number, OrderedFormat>()
  const withOrder = (order: number): OrderedFormat => {
    const known = made.get(order)
    if (known) return known
    if (order <= single) wrongOrder(head, order, `${head.over.length} dimensions or more`)
    if (order - single > MAX_COPIES) wrongOrder(head, order, `at most ${single + MAX_COPIES} dimensions`)
    const own = new Report()
    const format = write(order, own)
    own.finish()
    invariant(format, 'a format without errors')
    made.set(order, format)
    return format
  }
  return { kind: 'family', ...head, params: tried.params, withOrder: withOrder }
}

function wrongOrder({ name, over, span }: Head, order: number, expected: string): never {
  const names = over.map((o) => (o.list ? `${o.name}...` : o.name))
  return fail({
    code: 'format/order',
    message: `format ${name} is over (${names.join(', ')}), and this tensor has ${quantity(order, 'dimension')}`,
    ...(span && { span }),
    expected,
  })
}
