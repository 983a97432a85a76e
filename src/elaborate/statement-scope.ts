/** What a statement can see besides the kernel's declarations: iterators and `let`s around it. */
import type { Span } from '../ast/diagnostic.ts'
import { type Axis, isAttached } from '../ir/axis.ts'
import type { Dtype } from '../ir/dtype.ts'

export interface Seen {
  readonly what: 'iterator' | 'let'
  readonly name: string
  readonly span: Span
  readonly dtype: Dtype
  /** Of an iterator (or a member of a fused one): the axis as declared. */
  readonly axis: Axis | null
  /** Of a `let`: levels of operations in its value, with those of the `let`s it mentions. */
  readonly levels?: number | undefined
}

/** The names of a block, which are unique, inside of those around it. A block may have very many: none are copied. */
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

  /** Outermost first. */
  get names(): readonly string[] {
    return [...(this.#outer?.names ?? []), ...this.#names.keys()]
  }

  /** Outermost first. */
  get iterators(): readonly Seen[] {
    return [...(this.#outer?.iterators ?? []), ...this.#iterators]
  }
}

/** The iterator that stands on a stored axis, itself or through an attached view of it. */
export function standsOn({ iterators }: Scope, axis: string): Seen | undefined {
  return iterators.findLast(
    (s) => s.axis !== null && (s.axis.name === axis || (isAttached(s.axis) && s.axis.base === axis)),
  )
}
