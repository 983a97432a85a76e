/**
 * Queries of formats and compositions: `count(j by i)` in an expression becomes an entry of a list and a variable with
 * its name. The names are unique in the declaration; code that combines several lists renames them.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { type Expr, type Var, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import {
  declarationOf,
  operandsOf,
  type Query,
  queryKey,
  type UnnamedQuery,
} from '../../ir/formats/queries.ts'

/** The queries of one scope, each once and after the queries that it uses. */
export class Queries {
  readonly list: Query[] = []
  readonly #taken: ReadonlySet<string>
  readonly #byKey = new Map<string, Query>()

  constructor(taken: ReadonlySet<string>) {
    this.#taken = taken
  }

  /** Returns the variable with the result of a query. */
  ask(question: UnnamedQuery, span: Span): Var {
    const key = queryKey(question)
    let query = this.#byKey.get(key)
    if (!query) {
      query = { ...question, name: this.#fresh(question.kind), span }
      this.#byKey.set(key, query)
      this.list.push(query)
    }
    return variable(query.name, declarationOf(query).dtype ?? 'index', span)
  }

  #fresh(kind: string): string {
    const used = (name: string): boolean => this.#taken.has(name) || this.list.some((q) => q.name === name)
    let k = 1
    while (used(`${kind}_${k}`)) k++
    return `${kind}_${k}`
  }
}

/** Returns the queries that an expression uses, directly or through other queries. */
export function queriesOf(e: Expr, queries: readonly Query[]): ReadonlySet<Query> {
  const out = new Set<Query>()
  const visit = (x: Expr): void => {
    for (const q of queries)
      if (!out.has(q) && freeVars(x).has(q.name)) {
        out.add(q)
        for (const operand of operandsOf(q)) visit(operand)
      }
  }
  visit(e)
  return out
}
