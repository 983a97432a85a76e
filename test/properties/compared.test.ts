/** Counting of compared cases: a property that skips most of them fails. */
import { expect, test } from 'vitest'
import { assertCompared, Skipped, unlessSkipped } from '../support/compared.ts'
import { numbers } from './property-cases.ts'

const property = (isPossible: (draw: number) => boolean): Promise<void> => {
  const draws: number[] = []
  return assertCompared(
    numbers,
    ([first]) => {
      // Rotations of a draw come one after the other.
      draws.push(first!)
      if (!isPossible(draws.length)) throw new Skipped('illegal program')
    },
    { numRuns: 6 },
  )
}

test('if fewer than half of the draws are compared, both numbers and the reasons are reported', async () => {
  await expect(property(() => false)).rejects.toThrow(
    '0 of 6 drawn cases were compared; skipped: {"illegal program":72}',
  )
  await expect(property((call) => call > 48)).rejects.toThrow('2 of 6')
  await property((call) => call > 36)
})

test('a draw has further attempts', async () => {
  await property((call) => call % 12 === 0)
})

test('other errors are failures', async () => {
  await expect(
    assertCompared(
      numbers,
      () => {
        throw new Error('wrong result')
      },
      { numRuns: 1, endOnFailure: true },
    ),
  ).rejects.toThrow('Property failed')
  expect(unlessSkipped(() => 1)).toBe(1)
})
