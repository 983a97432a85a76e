/**
 * Queries of formats and compositions: `count(j by i)` in an expression becomes an entry of a list and a variable
 * of its name. The names are identifiers that nothing else in the declaration has; who puts several lists
 * together renames them.
 */
import type { Span } from '../ast/diagnostic.ts'
import { type Expr, type Var, variable } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import type { Query } from '../ir/format.ts'
import { keyOfQuestion, operandsOf, type Question } from '../ir/query-properties.ts'

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
    return variable(query.name, query.kind === 'value' ? 'f64' : 'i32', span)
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

/**
 * The dimensions on which the value of `e` depends, through the queries it holds: a group's answer depends on what
 * the group is formed by alone.
 */
export function dimensionsOf(
  e: Expr,
  queries: readonly Query[],
  dims: readonly string[],
): ReadonlySet<string> {
  const out = new Set<string>()
  for (const name of freeVars(e)) {
    if (dims.includes(name)) out.add(name)
    const q = queries.find((x) => x.name === name)
    const through = q?.kind === 'count' ? q.by : q?.kind === 'find' ? [q.of] : []
    for (const x of through) for (const d of dimensionsOf(x, queries, dims)) out.add(d)
  }
  return out
}
