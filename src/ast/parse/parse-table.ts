/** Dispatch tables: a JSON file whose rules a dispatch evaluates, with the searches that found them (`data/choices/`). */
import { failAt } from '../diagnostics/diagnostic.ts'
import { type Source, type Span, spanAt, spanIn } from '../diagnostics/span.ts'
import type * as ast from '../nodes/nodes.ts'
import { type LocatedEntry, type LocatedJson, type LocatedText, parseLocatedJson } from './located-json.ts'
import { parseExpression, parseScheduleCall } from './parse.ts'

/** The version of the file format. */
export const TABLE_VERSION = 1

/** True for paths of dispatch tables; other files are programs. */
export const isTablePath = (path: string): boolean => path.endsWith('.json')

type Shape = (value: LocatedJson, key: string) => unknown
const shape =
  (expected: string, holds: (x: LocatedJson) => boolean): Shape =>
  (x, key) => {
    if (!holds(x)) wrong(`${key} is ${KINDS[x.kind]}`, x.span, expected, `"${key}": ${expected}`)
    if (x.kind === 'list') return x.items.map((i) => (i.kind === 'text' ? i.value : null))
    return x.kind === 'record' ? null : x.value
  }
const KINDS = {
  text: 'a text that does not fit',
  number: 'a number that does not fit',
  word: 'a literal',
  list: 'a list',
  record: 'a record',
}

const isNonempty = (x: LocatedJson): x is LocatedText => x.kind === 'text' && x.value !== ''
const TEXT = shape('"…"', isNonempty)
const DATE = shape('"YYYY-MM-DD"', (x) => isNonempty(x) && /^\d{4}-\d{2}-\d{2}$/.test(x.value))
const COUNT = shape('1', (x) => x.kind === 'number' && Number.isSafeInteger(x.value) && Number(x.value) > 0)
const TEXTS = shape('["…"]', (x) => x.kind === 'list' && x.items.every(isNonempty))
const STATUS = shape(
  '"measured"',
  (x) => x.kind === 'text' && (x.value === 'measured' || x.value === 'transferred'),
)

/** Fields of an origin; a measured one needs all that end in `true`. */
const ORIGIN: Readonly<Record<keyof Omit<ast.RuleOrigin, 'name'>, readonly [Shape, boolean]>> = {
  status: [STATUS, true],
  device: [TEXT, true],
  matrices: [TEXTS, true],
  date: [DATE, true],
  trials: [COUNT, true],
  commit: [TEXT, false],
  command: [TEXT, false],
  note: [TEXT, false],
}

function wrong(message: string, span: Span, expected: string, hint?: string): never {
  failAt('table/field', span, { message, expected, ...(hint && { hint }) })
}

/** The entries of a record by key. @throws SptError `table/field` for unknown, repeated and missing keys */
function fieldsOf(
  x: LocatedJson,
  what: string,
  known: readonly string[],
  required: readonly string[],
): ReadonlyMap<string, LocatedEntry> {
  if (x.kind !== 'record') return wrong(`${what} is ${KINDS[x.kind]}`, x.span, `{ "${known[0]}": … }`)
  const fields = new Map<string, LocatedEntry>()
  for (const e of x.entries) {
    const { value: key, span } = e.key
    if (!known.includes(key))
      failAt('table/field', span, {
        message: `${what} has no field "${key}"`,
        lookup: { name: key, candidates: known },
        expected: known.map((k) => `"${k}"`).join(', '),
      })
    if (fields.has(key)) wrong(`"${key}" is given twice`, span, 'one value', `remove one "${key}"`)
    fields.set(key, e)
  }
  for (const key of required)
    if (!fields.has(key))
      wrong(`${what} has no field "${key}"`, spanAt(x.span, x.span.start, x.span.start + 1), `"${key}": …`)
  return fields
}

/** Reads a dispatch table as a file without declarations. @throws SptError `table/…`, `parse/…` */
export function parseTable(source: Source): ast.File {
  const span = spanIn(source, 0, source.text.length)
  const root = parseLocatedJson(source)
  const version = root.kind === 'record' && root.entries.find((e) => e.key.value === 'version')?.value
  if (version && version.kind === 'number' && version.value !== TABLE_VERSION)
    failAt('table/version', version.span, {
      message: `the dispatch table has version ${version.value}`,
      expected: `"version": ${TABLE_VERSION}`,
      hint: 'update sparsetile, or write the file again: spt tune FILE … --generalise TABLE.json',
    })
  const keys = ['version', 'kernel', 'kernelHash', 'origins', 'rules']
  const fields = fieldsOf(root, 'the dispatch table', keys, ['version', 'kernel', 'origins', 'rules'])
  shape(String(TABLE_VERSION), (x) => x.kind === 'number')(fields.get('version')!.value, 'version')
  const { value: kernel } = fields.get('kernel')!
  const hash = fields.get('kernelHash')
  const origins = originsOf(fields.get('origins')!.value)
  const { value: rules } = fields.get('rules')!
  if (rules.kind !== 'list' || rules.items.length === 0)
    return wrong('rules is not a list of rules', rules.span, '[{ "when": "d < 64", "use": "rows(8)" }]')
  const branches = rules.items.map((rule, k) =>
    branchOf(
      source,
      rule,
      k === rules.items.length - 1,
      origins.map((o) => o.name),
    ),
  )
  const table: ast.DispatchTable = {
    kernel: { name: TEXT(kernel, 'kernel') as string, span: kernel.span },
    kernelHash: hash ? { name: TEXT(hash.value, 'kernelHash') as string, span: hash.value.span } : null,
    origins,
    branches,
  }
  return { kind: 'file', imports: [], decls: [], table, span }
}

function originsOf(x: LocatedJson): readonly ast.RuleOrigin[] {
  if (x.kind !== 'record')
    return wrong(`origins is ${KINDS[x.kind]}`, x.span, '{ "NAME": { "status": "measured", … } }')
  return x.entries.map(({ key, value }): ast.RuleOrigin => {
    const names = Object.keys(ORIGIN) as (keyof typeof ORIGIN)[]
    const what = `origin "${key.value}"`
    const given = fieldsOf(value, what, names, ['status'])
    const fields = Object.fromEntries(
      names.flatMap((n) => {
        const field = given.get(n)
        return field ? [[n, ORIGIN[n][0](field.value, n)]] : []
      }),
    )
    const needs = fields.status === 'measured' ? names.filter((n) => ORIGIN[n][1]) : ['status', 'note']
    const missing = needs.find((n) => !given.has(n))
    if (missing !== undefined)
      wrong(
        `${what} is ${fields.status} and has no field "${missing}"`,
        key.span,
        needs.map((n) => `"${n}"`).join(', '),
        fields.status === 'measured' ? 'without a record of the search: "status": "transferred"' : undefined,
      )
    return { name: key.value, ...fields } as ast.RuleOrigin
  })
}

function branchOf(source: Source, x: LocatedJson, isLast: boolean, origins: readonly string[]): ast.Branch {
  const fields = fieldsOf(x, 'the rule', ['when', 'use', 'fastest', 'origin', 'note'], [])
  const [when, use, fastest, origin, note] = ['when', 'use', 'fastest', 'origin', 'note'].map((k) =>
    fields.get(k),
  )
  if (use ? fastest : !fastest)
    wrong(
      use ? 'the rule has "use" and "fastest"' : 'the rule has neither "use" nor "fastest"',
      x.span,
      '"use": "rows(8)", or "fastest": ["rows(8)", "rows(16)"]',
    )
  if (!when && !isLast)
    wrong('only the last rule may be without "when"', x.span, '"when": "d < 64"', 'move the rule to the end')
  const named = origin && (TEXT(origin.value, 'origin') as string)
  if (origin && !origins.includes(named!))
    failAt('table/field', origin.value.span, {
      message: `there is no origin "${named}"`,
      lookup: { name: named!, candidates: origins },
    })
  if (note) TEXT(note.value, 'note')
  const list = fastest?.value
  if (list && (list.kind !== 'list' || list.items.length === 0))
    wrong('fastest is not a list of schedules', list.span, '["rows(8)", "rows(16)"]')
  const calls = list?.kind === 'list' ? list.items : [use!.value]
  return {
    cond: when ? parseExpression(...excerpt(source, when.value, '"d < 64"')) : null,
    isFastest: list !== undefined,
    calls: calls.map((c) => parseScheduleCall(...excerpt(source, c, '"rows(8)"'))),
    span: x.span,
    ...(named !== undefined && { origin: named }),
  }
}

/** The text of a value in the language, and its place in the file. */
function excerpt(source: Source, x: LocatedJson, example: string): readonly [Source, Span] {
  if (x.kind !== 'text' || !x.isPlain)
    return wrong(
      'this is not a text of the language',
      x.span,
      example,
      'write it in quotes, without backslashes',
    )
  return [{ name: source.name, text: x.value }, spanIn(source, x.span.start + 1, x.span.end - 1)]
}
