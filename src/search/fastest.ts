import type { Outcome } from './types.ts'

/** What was measured, fastest first. */
export const fastestOf = <T extends { readonly outcome: Outcome }>(of: readonly T[]): readonly T[] =>
  of
    .flatMap((t) => (t.outcome.status === 'measured' ? [{ t, median: t.outcome.timing.median }] : []))
    .sort((a, b) => a.median - b.median)
    .map(({ t }) => t)
