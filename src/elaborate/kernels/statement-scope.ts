/** Names that a statement can use in addition to the kernel's declarations: iterators and `let`s around it. */

import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { type Axis, isAttached } from '../../ir/coordinates/axis.ts'
import type { ExprType } from '../../ir/values/dtype.ts'

export interface Seen {
  readonly what: 'iterator' | 'let'
  readonly name: string
  readonly span: Span
  readonly dtype: ExprType
  /** The declared axis of an iterator, or of a member of a fused iterator; null for a `let`. */
  readonly axis: Axis | null
  /**
   * The depth of operations in the value of a `let`, including the `let`s that the value mentions; for a `let` only.
   */
  readonly levels?: number | undefined
}

/**
 * The names of a block, which are unique, and the names around the block. A block may have very many names, so they are
 * not copied.
 */
export class Scope {
  readonly #outer: Scope | null
  readonly #names = new Map<string, Seen>()
  readonly #iterators: Seen[] = []

  constructor(outer: Scope | null = null) {
    this.#outer = outer
  }

  add(seen: Seen): void {
    this.#names.set(seen.name, seen)
    if (seen.what === 'iterator') this.#iterators.push(seen)
  }

  find(name: string): Seen | undefined {
    return this.#names.get(name) ?? this.#outer?.find(name)
  }

  /** All names in scope, outermost first. */
  get names(): readonly string[] {
    return [...(this.#outer?.names ?? []), ...this.#names.keys()]
  }

  /** All iterators in scope, outermost first. */
  get iterators(): readonly Seen[] {
    return [...(this.#outer?.iterators ?? []), ...this.#iterators]
  }
}

/**
 * Returns the innermost iterator over a stored axis, or over an attached view of it; undefined if there is no such
 * iterator.
 */
export function standsOn({ iterators }: Scope, axis: string): Seen | undefined {
  return iterators.findLast(
    (s) => s.axis !== null && (s.axis.name === axis || (isAttached(s.axis) && s.axis.base === axis)),
  )
}
