/** Queries in the syntax of format declarations: `rank(j by i / 2)`. */
import { type Expr, variable } from '../expressions/expr.ts'
import { mentions, rewriteExpr } from '../expressions/expr-tree.ts'
import type { FormatInstance } from '../formats/format.ts'
import { asFields, declarationOf, mapQuery, type Query, sourceOf } from '../formats/queries.ts'
import { exprPrinter, plainConstant } from './print-expr.ts'

const print = exprPrinter(plainConstant)

type QueriesAndLists = Pick<FormatInstance, 'queries' | 'lists'>

/** The i32 queries in an expression of a part, with their source syntax. */
export const queriesIn = (
  e: Expr,
  part: QueriesAndLists,
): readonly { readonly name: string; readonly text: string }[] => {
  const texts = queryTexts(part)
  return part.queries.flatMap((q) =>
    declarationOf(q).dtype === undefined && mentions(e, q.name)
      ? [{ name: q.name, text: texts.get(q.name)! }]
      : [],
  )
}

/** An expression over queries in the syntax of format declarations. */
export const printWithQueries = (e: Expr, queries: readonly Query[]): string => {
  const texts = queryTexts({ queries, lists: [] })
  return print(insertQueryTexts(e, texts))
}

const insertQueryTexts = (e: Expr, texts: ReadonlyMap<string, string>): Expr =>
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
  const inSourceSyntax = (e: Expr): Expr => insertQueryTexts(e, texts)
  for (const q of queries) {
    const list = lists.find((l) => l.position === q.name)
    texts.set(
      q.name,
      list ? `position(${list.axis.name})` : textOf(mapQuery(q, inSourceSyntax, (name) => name)),
    )
  }
  return texts
}

function textOf(q: Query): string {
  const { of, by } = asFields(q) as { readonly of?: Expr | readonly Expr[]; readonly by?: readonly Expr[] }
  const printList = (es: readonly Expr[]): string => es.map((e) => print(e)).join(', ')
  const operandText = of === undefined ? '' : 'kind' in of ? print(of) : printList(of)
  const sort = sourceOf(q, 'sort')
  if (sort !== undefined) return `${sort}[${operandText}]`
  const source = sourceOf(q, 'list') ?? sourceOf(q, 'set')
  const operands = [
    ...(source === undefined ? [] : [source]),
    ...(operandText === '' ? [] : [operandText]),
  ].join(', ')
  const groupText = by === undefined || by.length === 0 ? '' : `by ${printList(by)}`
  const argumentText = [operands, groupText].filter((x) => x !== '').join(' ')
  return argumentText === '' && by === undefined ? q.kind : `${q.kind}(${argumentText})`
}
