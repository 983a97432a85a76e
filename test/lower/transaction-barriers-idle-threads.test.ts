/** Counted copies where not every thread computes: those that sit out copy, wait and count rounds like the others. */
import { expect, test } from 'vitest'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { gather, gatherInputs } from './tma-gathers.ts'
import { copiesOf, inputsOf, scheduledBy } from './tma-products.ts'

// The last block has one row, and two threads copy.
test.each([0, 2, 3])('threads of rows beyond the edge copy tiles for others (%s stages)', (stages) => {
  const k = scheduledBy(
    'product',
    `require n % 4 == 0
    require k % 4 == 0
    split i by 3 -> (io, ii)
    split j by 4 -> (jo, jr)
    split p by 4 -> (po, pr)
    reorder (io, ii, jo, po, jr, pr)
    bind io to block.y, ii to thread.y
    cache_write C at jo in register
    cache_read B at po in tile -> Bs
    split Bs.pr by 2 -> (br, bh)
    tensorize bh with bulk
    ${stages > 0 ? `pipeline po by ${stages}` : ''}`,
  )
  const { inputs, C } = inputsOf('product', 1, 3, 1)
  for (let seed = 0; seed < 3; seed++) expect(copiesOf(k, inputs, C, seed)).toBe(2 * 4 * 3 * 2)
})

test.each([true, false])('padding found by all threads of the only row (thread.x: %s)', (onX) => {
  const inputs = gatherInputs([1, 3])
  const k = gather(1, onX, 0)
  const { source } = k.compilation
  const { C } = reference(source, referenceInputs(source, bindInputs(source, inputs))).buffers
  for (let seed = 0; seed < 3; seed++) expect(copiesOf(k, inputs, [...C!.values], seed)).toBe(1 + 3)
})
