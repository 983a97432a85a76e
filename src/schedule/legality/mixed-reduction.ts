import type { Refusal } from '../../ast/diagnostics/diagnostic.ts'

/** Returns the diagnostic for a `fuse` of loops of which only some are reductions. */
export function mixedReduction(
  loops: readonly { readonly name: string; readonly reduce: boolean }[],
): Refusal {
  const names = loops.map((l) => l.name)
  const leading = names.slice(
    0,
    loops.findIndex((l) => l.reduce !== loops[0]!.reduce),
  )
  return {
    code: 'schedule/mixed-reduction',
    message: `of ${names.join(', ')} only ${loops.flatMap((l) => (l.reduce ? [l.name] : [])).join(', ')} reduce`,
    expected: 'only reduction loops, or no reduction loop',
    hint:
      leading.length > 1
        ? `fuse (${leading.join(', ')})`
        : 'reorder loops of the same kind to be adjacent, then fuse',
  }
}
