/** Result of sketch rules: steps that are planned before any is applied, so that decisions are cheap. */
import type { Draft, Schedulable } from './draft.ts'

/** Plans the loop order of one strand or nest, before its copies and loop modes. */
export type Plan = <K extends Schedulable<K>>(draft: Draft<K>) => Arrangement

/** Loops after reordering and binding. */
export interface Arrangement {
  /**
   * The innermost loop outside of all reductions: results are complete at its end; `undefined` if there is no such
   * loop.
   */
  readonly completeAt: string | undefined
  /** Applies copies and loop modes, after which nothing can be moved into the loops. */
  finish<K extends Schedulable<K>>(draft: Draft<K>): void
}
