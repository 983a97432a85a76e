/** Loop tiling (blocking): loops are split, and the inner loops move inside (`tile`). */

import { checkPerfectChain } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { type Gone, primitive } from '../../primitive.ts'
import * as arg from '../../steps/arguments.ts'
import { reorder } from './reorder.ts'
import { split } from './split.ts'

/**
 * `tile (i, f) by (8, 32) -> (io, fo, ii, fi)`: splits each loop and moves the inner loops inside. The step is legal if
 * the splits and the reorder are legal.
 */
export const tile = primitive({
  word: 'tile',
  call: "tile(['i', 'f'], [8, 32], ['io', 'fo', 'ii', 'fi'])",
  takes: [
    arg.loops('loops'),
    'by',
    arg.factors('loops')('by'),
    arg.optional('->', arg.newLoops(2, 'loops')('into')),
  ],
  given: (loops: readonly LoopRef[], by: readonly number[], into?: readonly string[]) => ({
    loops,
    by,
    into,
  }),
  apply(cx, step) {
    const n = step.loops.length
    const found = step.loops.map((r) => cx.loop(r))
    if (n < 1 || step.by.length !== n || (step.into && step.into.length !== 2 * n))
      cx.refuse(
        'schedule/bad-arguments',
        found.map((f) => f.loop),
        {
          message: `tile has ${n} loops, ${step.by.length} factors and ${step.into?.length ?? 2 * n} names`,
          expected: 'one factor and two names for each loop',
        },
      )
    const chain = checkPerfectChain(cx, found, 'tile')
    const loops = found.map((f) => f.loop)
    if (chain.filter((l) => loops.includes(l)).some((l, k) => l !== loops[k]))
      cx.refuse('schedule/not-adjacent', chain, {
        message: 'tile takes loops from the outermost',
        expected: `the order ${chain.map((l) => l.name).join(', ')}`,
      })
    let here = cx
    const outers: string[] = []
    const inners: string[] = []
    const replaced: Gone[] = []
    for (const [k, l] of loops.entries()) {
      const into = [step.into?.[k] ?? `${l.name}o`, step.into?.[n + k] ?? `${l.name}i`] as const
      const outcome = split.apply(here, { kind: 'split', loop: { var: l.var }, by: step.by[k]!, into })
      here = here.on({ ...here.kernel, body: outcome.body })
      outers.push(`${l.nest}.${into[0]}`)
      inners.push(`${l.nest}.${into[1]}`)
      replaced.push({ ...outcome.gone![0]!, how: 'tiled' })
    }
    if (n === 1) return { body: here.kernel.body, gone: replaced }
    const { body } = reorder.apply(here, { kind: 'reorder', loops: [...outers, ...inners] })
    return { body, gone: replaced }
  },
})
