/** Validates and reports masks given by the user like masks computed here. */
import { checkMasks } from '../../prune/layers.ts'
import { type Layers, type Mask, type Pruned, type PruneOptions, prune } from '../../prune.ts'
import type { Call } from '../command.ts'
import { misused } from '../usage.ts'
import { CHECKED, type ChosenPattern } from './patterns.ts'

/** Options that choose masks, and have no effect on given masks. */
const CHOOSING = ['sparsity', 'normalise', 'gradients', 'limit', 'exclude', 'after']

/** @throws UsageError */
export function checkGiven(call: Call, { pattern, check }: ChosenPattern): void {
  const { command } = call
  if (call.one('masks') === undefined) return
  for (const option of CHOOSING)
    if (call.one(option) !== undefined)
      misused({
        command,
        message: `--${option} is for choosing masks, and --masks gives them`,
        expected: 'one of the two',
      })
  if (!check)
    misused({
      command,
      message: `given masks cannot be checked against ${pattern.text}`,
      expected: `--pattern ${CHECKED.join(' or ')}`,
    })
}

/** Layers without a mask are kept whole, and in no total. @throws SptError `prune/mask`, `prune/not-tile-wise` */
export async function withGiven(
  { shapes, weights }: Layers,
  given: ReadonlyMap<string, Mask>,
  { pattern, check }: ChosenPattern,
  report: Pick<PruneOptions, 'warnBelow' | 'onProgress'>,
): Promise<Pruned> {
  const places = shapes.flatMap((s, k) => (given.has(s.name) ? [k] : []))
  const chosen = places.map((k) => shapes[k]!)
  const kept = chosen.map((s) => given.get(s.name)!)
  checkMasks('masks', kept, chosen)
  const tiles = chosen.flatMap((s, k) => {
    const of = check!(kept[k]!, s)
    return of ? [of] : []
  })
  const elements = kept.reduce((n, m) => n + m.length, 0)
  const pruned = kept.reduce((n, m) => m.reduce((sum, x) => sum + 1 - x, n), 0)
  const made = await prune(
    { shapes: chosen, weights: (k) => weights(places[k]!) },
    {
      pattern: {
        ...pattern,
        // All pruned is what nobody can ask for.
        sparsity: Math.min(pruned, elements - 1) / elements,
        least: 0,
        async masks({ scores }) {
          // Weights are finite, or refused, as where masks are chosen.
          for (const k of chosen.keys()) await scores(k, 'given masks')
          return { kept, ...(tiles.length > 0 && { tiles }) }
        },
      },
      ...report,
    },
  )
  return {
    masks: shapes.map((s) => given.get(s.name) ?? new Uint8Array(s.rows * s.cols).fill(1)),
    report: made.report,
  }
}
