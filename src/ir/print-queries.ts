/** Queries in the syntax of format declarations: `rank(j by i / 2)`. */
import { type Expr, variable } from './expr.ts'
import { mentions, rewriteExpr } from './expr-tree.ts'
import type { FormatInstance } from './format.ts'
import { exprPrinter, plainConstant } from './print-expr.ts'
import { asFields, declarationOf, mapQuery, type Query, sourceOf } from './queries.ts'

const print = exprPrinter(plainConstant)

type Asking = Pick<FormatInstance, 'queries' | 'lists'>

/** The i32 queries that an expression of a part mentions, with their source syntax. */
export const queriesIn = (
  e: Expr,
  part: Asking,
): readonly { readonly name: string; readonly text: string }[] => {
  const texts = queryTexts(part)
  return part.queries.flatMap((q) =>
    declarationOf(q).dtype === undefined && mentions(e, q.name)
      ? [{ name: q.name, text: texts.get(q.name)! }]
      : [],
  )
}

/** An expression over queries in the syntax of format declarations. */
export const textOfAsked = (e: Expr, queries: readonly Query[]): string => {
  const texts = queryTexts({ queries, lists: [] })
  return print(named(e, texts))
}

const named = (e: Expr, texts: ReadonlyMap<string, string>): Expr =>
  rewriteExpr(e, (x) => {
    const text = x.kind === 'var' ? texts.get(x.name) : undefined
    return text === undefined ? undefined : variable(text)
  })

/** The source syntax of each query by name; queries in operands are printed inline. */
function queryTexts({
  queries,
  lists,
}: Pick<FormatInstance, 'queries' | 'lists'>): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  const written = (e: Expr): Expr => named(e, texts)
  for (const q of queries) {
    const list = lists.find((l) => l.position === q.name)
    texts.set(q.name, list ? `position(${list.axis.name})` : textOf(mapQuery(q, written, (name) => name)))
  }
  return texts
}

function textOf(q: Query): string {
  const { of, by } = asFields(q) as { readonly of?: Expr | readonly Expr[]; readonly by?: readonly Expr[] }
  const all = (es: readonly Expr[]): string => es.map((e) => print(e)).join(', ')
  const asked = of === undefined ? '' : 'kind' in of ? print(of) : all(of)
  const sort = sourceOf(q, 'sort')
  if (sort !== undefined) return `${sort}[${asked}]`
  const source = sourceOf(q, 'list') ?? sourceOf(q, 'set')
  const operands = [...(source === undefined ? [] : [source]), ...(asked === '' ? [] : [asked])].join(', ')
  const grouped = by === undefined || by.length === 0 ? '' : `by ${all(by)}`
  const inside = [operands, grouped].filter((x) => x !== '').join(' ')
  return inside === '' && by === undefined ? q.kind : `${q.kind}(${inside})`
}
