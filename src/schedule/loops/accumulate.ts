import type { For } from '../../ir/loops.ts'
import { type Segments, segmentsOf } from '../../ir/segments.ts'
import { replaceLoop, stmt } from '../../ir/tree.ts'
import { checkSerial } from '../checks.ts'
import type { Context } from '../context.ts'
import type { Primitive } from '../primitive.ts'
import { listedRows } from '../samples.ts'
import type { AccumulateStep } from '../steps.ts'

/** Registers of a thread that sums may take. */
const MOST_SUMS = 64

/**
 * `accumulate C over s`: what neighbouring iterations of `s` combine into one element of `C` is combined in registers;
 * the element is updated where the next one has another, and at the end. For loops over elements that are sorted by
 * what they combine into: a thread's share of the nonzeros, most of which are of one row.
 *
 * Loops inside that run over different elements keep a register for each. Refused where a sum in registers would not
 * be what goes to the element.
 */
export const accumulate: Primitive<AccumulateStep> = {
  kind: 'accumulate',
  apply(cx, step) {
    const { loop: over } = cx.loop(step.loop)
    const target = cx.buffer(step.buffer)
    checkSerial(cx, over, 'accumulate over')
    const segments = segmentsFor(cx, over, target.name)
    const sums = segments.inner.reduce((n, l) => n * (l.extent.kind === 'const' ? l.extent.value : 1), 1)
    if (sums > MOST_SUMS)
      cx.refuse({
        code: 'too-many-registers',
        message: `${sums} elements of ${target.name} would each have a register`,
        loops: [over, ...segments.inner],
        expected: `at most ${MOST_SUMS}`,
        hint: `split ${segments.inner[0]!.name} and bring the outer part around ${over.name}`,
      })
    return {
      body: replaceLoop(cx.kernel.body, over.var, (l) => stmt({ ...l, mode: { kind: 'accumulate' } })),
    }
  },
  example: {
    before: listedRows,
    step: { kind: 'accumulate', buffer: 'C', loop: 'p' },
    after: `\
for p in 0..p_count  reduce  @accumulate
  for f in 0..4
    C[rows[p], f] += A[p, f]`,
  },
}

function segmentsFor(cx: Context, over: For, target: string): Segments {
  const segments = segmentsOf(over)
  if (typeof segments === 'string')
    return cx.refuse({
      code: 'no-segments',
      message: `accumulate over ${over.name}: ${segments}`,
      loops: [over],
      expected: `one reduction into ${target} whose element changes with ${over.name}`,
      hint: 'reorder first: bound loops and other reductions stand outside',
    })
  const targets = segments.reduce.targets.map((t) => t.buffer)
  if (!targets.includes(target))
    cx.refuse({
      code: 'no-segments',
      message: `${over.name} combines into ${targets.join(' and ')}, not into ${target}`,
      loops: [over],
      expected: `accumulate ${targets[0]}`,
    })
  return segments
}
