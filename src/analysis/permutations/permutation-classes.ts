/**
 * Classes of tensor dimensions and iterators that are permuted identically (union-find), and reasons that forbid the
 * permutation.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'

/** A dimension of a tensor: its index, and the name of its axis. */
export interface TensorDimension {
  readonly tensor: string
  readonly dimension: number
  readonly axis: string
}

/** The reason why a dimension may not be permuted, and its span in the text. */
export interface PermutationObstacle {
  readonly reason: string
  readonly span?: Span | undefined
}

/** Dimensions of one tensor that come into one class, and the span in the text that causes it. */
interface Tie {
  readonly dims: readonly TensorDimension[]
  readonly span: Span | undefined
}

/** A member of a class, all of whose members are permuted by one permutation. */
export class Alike {
  #parent: Alike | null = null
  #dims: readonly TensorDimension[]
  #iterators: readonly string[]
  /** Reasons that forbid the permutation; the first is reported. */
  #refusals: readonly PermutationObstacle[] = []
  #ties: readonly Tie[] = []

  constructor(dims: readonly TensorDimension[], iterators: readonly string[] = []) {
    this.#dims = dims
    this.#iterators = iterators
  }

  get #root(): Alike {
    let root: Alike = this
    while (root.#parent) root = root.#parent
    return root
  }

  get dims(): readonly TensorDimension[] {
    return this.#root.#dims
  }

  /** Axes of the class's iterators, in the order in which iterators are opened. */
  get iterators(): readonly string[] {
    return this.#root.#iterators
  }

  get refusal(): PermutationObstacle | null {
    return this.#root.#refusals[0] ?? null
  }

  refuse(reason: string, span: Span | undefined): void {
    const root = this.#root
    root.#refusals = [...root.#refusals, span ? { reason, span } : { reason }]
  }

  /**
   * Returns the span in the text that first ties this dimension to another dimension of its tensor; undefined without
   * such a tie.
   */
  tiedAt(tensor: string, dimension: number): Span | undefined {
    const isOf = (d: TensorDimension): boolean => d.tensor === tensor && d.dimension === dimension
    return this.#root.#ties.find((t) => t.dims.some(isOf))?.span
  }

  join(other: Alike, span: Span | undefined): void {
    const [a, b] = [this.#root, other.#root]
    if (a === b) return
    b.#parent = a
    const of = (x: Alike): Set<string> => new Set(x.#dims.map((d) => d.tensor))
    const both = [...of(a)].filter((tensor) => of(b).has(tensor))
    const tied = both.map((tensor): Tie => {
      return { dims: [...a.#dims, ...b.#dims].filter((d) => d.tensor === tensor), span }
    })
    a.#ties = [...a.#ties, ...b.#ties, ...tied]
    a.#dims = [...a.#dims, ...b.#dims]
    a.#iterators = [...new Set([...a.#iterators, ...b.#iterators])]
    a.#refusals = [...a.#refusals, ...b.#refusals]
  }
}
