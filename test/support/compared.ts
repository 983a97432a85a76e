/** Properties whose random cases may be impossible: others are drawn instead, and the compared ones are counted. */
import fc from 'fast-check'

/** The case cannot be compared: the program is illegal, or the target cannot run it. Outside of `assertCompared`, a test fails. */
export class Skipped extends Error {}

/** Cases that are made from one draw until one is possible. */
const ATTEMPTS = 12

/** Time for shrinking a failure, in ms: `.ci/run` has to end. */
const SHRINKING = 20_000

/** Choices that are as random as `numbers`, which come first. */
export const rotations = (numbers: readonly number[]): (readonly number[])[] =>
  Array.from({ length: ATTEMPTS }, (_, k) => {
    const at = Math.floor((k * numbers.length) / ATTEMPTS)
    return [...numbers.slice(at), ...numbers.slice(0, at)]
  })

/** The result, or `undefined` if the case is skipped. */
export function unlessSkipped<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (e) {
    if (e instanceof Skipped) return undefined
    throw e
  }
}

/** Like `fc.assert`, for a property that may throw `Skipped`. Fails if fewer than half of the drawn cases were compared. */
export async function assertCompared(
  numbers: fc.Arbitrary<readonly number[]>,
  compare: (numbers: readonly number[]) => Promise<void> | void,
  parameters: fc.Parameters<[readonly number[]]>,
): Promise<void> {
  let drawn = 0
  let compared = 0
  let failedAt = Number.POSITIVE_INFINITY
  const reasons = new Map<string, number>()
  const attempt = async (n: readonly number[]): Promise<boolean> => {
    try {
      await compare(n)
      return true
    } catch (e) {
      if (!(e instanceof Skipped)) {
        failedAt = Math.min(failedAt, Date.now())
        throw e
      }
      reasons.set(e.message, (reasons.get(e.message) ?? 0) + 1)
      return false
    }
  }
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      if (Date.now() > failedAt + SHRINKING) return
      drawn++
      for (const rotated of rotations(n))
        if (await attempt(rotated)) {
          compared++
          return
        }
    }),
    parameters,
  )
  if (2 * compared < drawn)
    throw new Error(
      `${compared} of ${drawn} drawn cases were compared; skipped: ${JSON.stringify(Object.fromEntries(reasons))}`,
    )
}
