/** Scopes of Stage I → II: values by name, open axes, and facts. Immutable; inner scopes extend outer ones. */
import { Facts } from '../../analysis/integers/facts.ts'
import type { Expr } from '../../ir/expressions/expr.ts'

/** An axis that an enclosing loop iterates over. */
export interface OpenAxis {
  /** Parent position of its segment; `null` for a root. */
  readonly parent: Expr | null
  /** Absolute position of the current entry on the axis, counted over all segments. */
  readonly offset: Expr
  readonly coordinate: Expr
}

export interface Scope {
  /** Values of iterators and lets by name, over positions. */
  readonly values: ReadonlyMap<string, Expr>
  /** Open iterators of each stored axis, the innermost last. */
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

/** Returns the scope with a copy of its facts that can be extended independently. */
export const withFacts = (scope: Scope): Scope => ({ ...scope, facts: scope.facts.child() })
