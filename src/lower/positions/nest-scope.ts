/** What the body of a nest can see: coordinates by name, open axes, facts. Immutable; scopes extend. */
import { Facts } from '../../analysis/integers/facts.ts'
import type { Expr } from '../../ir/expr.ts'

/** An axis whose loop is open. */
export interface OpenAxis {
  /** Position under which its segment was entered; `null` for a root. */
  readonly parent: Expr | null
  /** Absolute position. */
  readonly offset: Expr
  readonly coordinate: Expr
}

export interface Scope {
  /** Iterator and `let` names → value, in positions. */
  readonly values: ReadonlyMap<string, Expr>
  /** Stored axes that are open: the innermost opening of each. */
  readonly open: ReadonlyMap<string, readonly OpenAxis[]>
  readonly facts: Facts
}

export const emptyScope = (): Scope => ({ values: new Map(), open: new Map(), facts: new Facts() })

export function withValue(scope: Scope, name: string, value: Expr): Scope {
  return { ...scope, values: new Map(scope.values).set(name, value) }
}

export function withAxis(scope: Scope, axis: string, open: OpenAxis): Scope {
  return { ...scope, open: new Map(scope.open).set(axis, [...(scope.open.get(axis) ?? []), open]) }
}

/** The same scope with facts that may be extended without touching the outer scope's. */
export const withFacts = (scope: Scope): Scope => ({ ...scope, facts: scope.facts.child() })
