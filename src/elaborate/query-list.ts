/**
 * Queries of formats and compositions: `count(j by i)` in an expression becomes an entry of a list and a variable
 * of its name. The names are identifiers that nothing else in the declaration has; who puts several lists
 * together renames them.
 */
import type { Span } from '../ast/diagnostic.ts'
import { type Expr, type Var, variable } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import { declarationOf, keyOfQuestion, operandsOf, type Query, type Question } from '../ir/queries.ts'

/** The queries of one place, each once, in an order in which each comes after those it uses. */
export class Queries {
  readonly list: Query[] = []
  readonly #taken: ReadonlySet<string>
  readonly #byKey = new Map<string, Query>()

  constructor(taken: ReadonlySet<string>) {
    this.#taken = taken
  }

  /** The variable that holds the answer. */
  ask(question: Question, span: Span): Var {
    const key = keyOfQuestion(question)
    let query = this.#byKey.get(key)
    if (!query) {
      query = { ...question, name: this.#fresh(question.kind), span }
      this.#byKey.set(key, query)
      this.list.push(query)
    }
    return variable(query.name, declarationOf(query).dtype ?? 'i32', span)
  }

  #fresh(kind: string): string {
    const used = (name: string): boolean => this.#taken.has(name) || this.list.some((q) => q.name === name)
    let k = 1
    while (used(`${kind}_${k}`)) k++
    return `${kind}_${k}`
  }
}

/** The queries that an expression asks, those they ask included. */
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
