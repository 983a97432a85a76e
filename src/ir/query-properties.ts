/** What holds of every query of a format, whoever asks it (`ir/format.ts`). */
import type { Expr } from './expr.ts'
import type { Query } from './format.ts'
import { keyOf } from './structural-equality.ts'

type WithoutName<Q> = Q extends Query ? Omit<Q, 'name' | 'span'> : never
/** A query that has no name yet. */
export type Question = WithoutName<Query>

/** What it reads of each coordinate. */
export function operandsOf(q: Question): readonly Expr[] {
  switch (q.kind) {
    case 'count':
    case 'rank':
      return [...q.of, ...q.by]
    case 'largest':
      return q.by
    case 'place':
    case 'find':
      return [q.of]
    case 'value':
    case 'held':
      return []
  }
}

/** Equal for questions with equal answers in one scope. */
export function keyOfQuestion(q: Question): string {
  const source = q.kind === 'held' ? q.set : q.kind === 'place' ? q.sort : q.kind === 'find' ? q.list : ''
  const of = q.kind === 'count' || q.kind === 'rank' ? q.of.length : 0
  return [q.kind, source, of, ...operandsOf(q).map(keyOf)].join(' ')
}
