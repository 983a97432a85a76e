/** What is permuted alike: dimensions of tensors and iterators, joined (union-find), and what forbids it. */
import type { Span } from '../ast/diagnostic.ts'

/** A dimension of a tensor: its place, and the name of the axis there. */
export interface TensorDimension {
  readonly tensor: string
  readonly dimension: number
  readonly axis: string
}

/** Why a dimension may not be permuted, and where the text says so. */
export interface PermutationRefusal {
  readonly reason: string
  readonly span?: Span | undefined
}

/** Dimensions of one tensor that come into one class, and where the text says so. */
interface Tie {
  readonly dims: readonly TensorDimension[]
  readonly span: Span | undefined
}

/** A member of a class: everything that has to be permuted by one permutation. */
export class Alike {
  #parent: Alike | null = null
  #dims: readonly TensorDimension[]
  #iterators: readonly string[]
  /** The first is told. */
  #refusals: readonly PermutationRefusal[] = []
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

  /** Axes of the iterators, in the order in which they were opened. */
  get iterators(): readonly string[] {
    return this.#root.#iterators
  }

  get refusal(): PermutationRefusal | null {
    return this.#root.#refusals[0] ?? null
  }

  refuse(reason: string, span: Span | undefined): void {
    const root = this.#root
    root.#refusals = [...root.#refusals, span ? { reason, span } : { reason }]
  }

  /** Where the text first says that this dimension is permuted as another one of its tensor is. */
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
