import type { For } from '../../ir/loops.ts'
import { type Segments, segmentsOf } from '../../ir/segments.ts'
import { replaceLoop, stmt } from '../../ir/tree.ts'
import { checkConstantExtent, checkFactor, checkSerial } from '../checks.ts'
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
 * `by 4` computes the values of four iterations before it combines them: their loads are under way together.
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
    const by = step.by ?? 1
    if (step.by !== undefined) checkBatches(cx, over, segments, by)
    const mode = { kind: 'accumulate', by } as const
    return { body: replaceLoop(cx.kernel.body, over.var, (l) => stmt({ ...l, mode })) }
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

/** Batches divide the loop, which holds nothing but the reduction. */
function checkBatches(cx: Context, over: For, { inner, reduce }: Segments, by: number): void {
  checkFactor(cx, by, 2, 'the number of values at a time', over)
  const extent = checkConstantExtent(cx, over, 'values at a time need a constant extent')
  const nest = [over, ...inner]
  const perfect = nest.every((l, k) => l.body.length === 1 && l.body[0] === (nest[k + 1] ?? reduce))
  if (extent % by === 0 && by <= MOST_SUMS && perfect) return
  cx.refuse({
    code: 'no-batches',
    message: perfect
      ? `${by} values at a time do not divide the ${extent} iterations of ${over.name}`
      : `${over.name} holds more than the reduction`,
    loops: nest,
    expected: `a loop whose extent is a multiple of the number of values, at most ${MOST_SUMS}`,
  })
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
