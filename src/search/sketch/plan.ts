/** Result of sketch rules: steps that are planned before any is applied, so that decisions are cheap. */
import type { Draft, Schedulable } from './draft.ts'

/** Steps of one strand or nest. */
export type Plan = <K extends Schedulable<K>>(draft: Draft<K>) => Arranged

/** Loops in their places. */
export interface Arranged {
  /** The innermost loop outside of all reductions: what is computed is whole at its end. */
  readonly whole: string | undefined
  /** Copies and loop modes, which nothing can be moved into afterwards. */
  finish<K extends Schedulable<K>>(draft: Draft<K>): void
}
