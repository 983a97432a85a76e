/** Members of families by name. */
import { fail } from '../../src/ast/diagnostics/diagnostic.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'

/** Something that is drawn from a few parameters and a seed. */
export interface MatrixFamily<T> {
  readonly description: string
  /** The size where nothing else is said. */
  readonly defaultSize?: number
  /** `size`: about how many rows there are. */
  generate(size: number, random: Random): T
}

/** Rows of a member where nothing else is said. */
const USUAL = 40_000

/** Of which some families have a hundred elements each. */
const MOST = 2_000_000

/**
 * A member of one of `families`: `road`, `road:100000` (about so many rows), `road:100000:7` (the seed).
 * @throws SptError `families/too-large`
 */
export function generateMember<T>(
  families: Readonly<Record<string, MatrixFamily<T>>>,
  name: string,
): T | undefined {
  const [family, size, seed = '1', ...more] = name.split(':')
  const known = families[family!]
  const [n, s] = [Number(size ?? known?.defaultSize ?? USUAL), Number(seed)]
  if (!known || more.length > 0 || !Number.isInteger(n) || n < 1 || !Number.isInteger(s)) return undefined
  if (n > MOST)
    fail({
      code: 'families/too-large',
      message: `${name} would have about ${n} rows`,
      expected: `at most ${MOST}`,
      hint: 'members are made in memory, as lists',
    })
  return known.generate(n, new Random(s))
}
