/** Dispatch tables: the branches of a dispatch in a file (`data/choices/`), with the searches that found them. */
import { resolvePath } from '../../ast/imports/resolve-path.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { kernelText } from '../../ast/print/print-expr.ts'
import { kernelIdentifier, kernelWord } from '../../ir/coordinates/derived-names.ts'
import { errorCount, report } from '../diagnostics.ts'
import type { Resolve } from '../schedules/resolve.ts'
import type { StoredDispatch } from '../schedules/schedule-types.ts'

/** The dispatch of the kernel in the file that `choose from` names. */
export function storedDispatch(c: Ast.Dispatch, r: Resolve): StoredDispatch | null {
  const { value, span } = c.table!
  const kernel = c.inheritedFrom ?? c.kernel.name
  const tables = r.tables(c)
  const [first] = tables
  if (!first)
    return report('table/program', span, {
      message: `\`${value}\` has no dispatch table`,
      expected: `\`dispatch ${kernel} { … }\``,
      hint: `write the file with: spt tune FILE --kernel ${kernelWord(kernel)} … --generalise ${kernelIdentifier(kernel)}.spt`,
    })
  // A table for all types of a kernel serves those without a table of their own.
  const names = [kernel, r.kernel!.name, kernel.replace(/<.*/, '')]
  const tableOf = (name: string) => tables.find((t) => kernelText(t.kernel, t.types) === name)
  const table = names.map(tableOf).find((t) => t !== undefined)
  if (!table)
    return report('table/kernel', span, {
      message: `\`${value}\` holds a dispatch of kernel ${kernelText(first.kernel, first.types)}`,
      labels: [{ span: first.kernel.span, text: 'stated here' }],
      expected: `a dispatch of kernel ${kernel}`,
      hint: `if the kernel was renamed, write \`dispatch ${kernel}\` in the file`,
    })
  const before = errorCount()
  const declared = table.items.filter((x): x is Ast.Origin => 'fields' in x)
  const origins = declared.map(originOf)
  const branches = table.items.filter((x): x is Ast.Branch => 'cond' in x)
  const candidates = origins.map((o) => o.name)
  for (const [k, { name }] of declared.entries())
    if (candidates.indexOf(name.value) < k)
      report('table/field', name.span, {
        message: `origin "${name.value}" is given twice`,
        hint: 'rename one of them',
      })
  for (const { origin } of branches)
    if (origin && !candidates.includes(origin.value))
      report('table/field', origin.span, {
        message: `there is no origin "${origin.value}"`,
        lookup: { name: origin.value, candidates },
      })
  if (errorCount() > before) return null
  const hash = c.inheritedFrom === undefined ? table.hash : null
  return { path: resolvePath(c.span.source, value), hash, origins, branches }
}

type Values = Ast.OriginField['values']
type OriginFields = Omit<Ast.RuleOrigin, 'name' | 'status'>
interface Form {
  readonly example: string
  readonly value: (values: Values) => unknown
  /** True for fields that a measured origin must have. */
  readonly ofSearch?: true
}

const text = ([x, second]: Values): string | undefined =>
  x && !second && typeof x.value === 'string' && x.value !== '' ? x.value : undefined
const TEXT: Form = { example: '"…"', value: text }

const FIELDS: Readonly<Record<keyof OriginFields, Form>> = {
  device: { ...TEXT, ofSearch: true },
  matrices: {
    example: '"…", "…"',
    value: (list) => (list.every((x) => text([x]) !== undefined) ? list.map((x) => x.value) : undefined),
    ofSearch: true,
  },
  date: {
    example: '"YYYY-MM-DD"',
    value: (list) => (/^\d{4}-\d{2}-\d{2}$/.test(text(list) ?? '') ? text(list) : undefined),
    ofSearch: true,
  },
  trials: {
    example: '1',
    value: ([x, second]) =>
      !second && Number.isSafeInteger(x?.value) && Number(x?.value) > 0 ? x?.value : undefined,
    ofSearch: true,
  },
  commit: TEXT,
  command: TEXT,
  note: TEXT,
}
const NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[]

function originOf({ name, status, fields }: Ast.Origin): Ast.RuleOrigin {
  const what = `origin "${name.value}"`
  const out: Record<string, unknown> = { name: name.value, status: status.name }
  const wrong = (span: Ast.Node['span'], message: string, expected: string, hint?: string): null =>
    report('table/field', span, { message, expected, ...(hint && { hint }) })
  const isMeasured = status.name === 'measured'
  const isTransferred = status.name === 'transferred'
  if (!isMeasured && !isTransferred)
    wrong(status.span, `${what} is ${status.name}`, 'measured or transferred')
  for (const { name: field, values, span } of fields) {
    const key = NAMES.find((n) => n === field.name)
    const value = key && FIELDS[key].value(values)
    if (!key)
      report('table/field', field.span, {
        message: `${what} has no field ${field.name}`,
        lookup: { name: field.name, candidates: NAMES },
        expected: NAMES.join(', '),
      })
    else if (value === undefined)
      wrong(span, `${field.name} has a value that does not fit`, `${key} ${FIELDS[key].example}`)
    else if (key in out) wrong(span, `${key} is given twice`, 'one value', `remove one \`${key}\``)
    else out[key] = value
  }
  const required = isMeasured ? NAMES.filter((n) => FIELDS[n].ofSearch) : isTransferred ? ['note'] : []
  const missing = required.find((n) => !fields.some((f) => f.name.name === n))
  if (missing)
    wrong(
      name.span,
      `${what} is ${status.name} and has no field ${missing}`,
      required.join(', '),
      isMeasured ? 'without a record of the search, write `transferred`' : undefined,
    )
  return out as unknown as Ast.RuleOrigin
}
