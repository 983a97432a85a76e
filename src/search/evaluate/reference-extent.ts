/** How much of the results the reference computes for a study: all, or as many rows as it can in a few seconds. */
import type { Workspace } from '../../api/workspace.ts'
import { fail, SptError } from '../../ast/diagnostic.ts'

/** Options of the reference. */
export type Extent = NonNullable<Parameters<Workspace['expected']>[0]>

/** Coordinates that it visits at most: a second or two. */
const VISITS = 2 ** 25
const SAMPLES = [1000, 30, 1] as const

/**
 * What candidates are compared with: everything, or a sample that `seed` draws.
 * @throws SptError `search/reference-too-long`, and as `reference`
 */
export function referenceExtent(data: Workspace, seed: number, visits: number = VISITS): Extent {
  const extents: Extent[] = [{ visits }, ...SAMPLES.map((count) => ({ sample: { count, seed }, visits }))]
  for (const options of extents) {
    try {
      data.expected(options)
      return options
    } catch (e) {
      if (!(e instanceof SptError) || e.diagnostics[0]!.code !== 'reference/too-long') throw e
    }
  }
  return fail({
    code: 'search/reference-too-long',
    message: `the reference visits more than ${visits} coordinates for a single row of the results, or no row can be computed by itself`,
    expected: 'a kernel whose results can be checked: nothing is compared with what nobody computed',
    hint: 'tune with smaller sizes, and run the winner on the large ones',
  })
}
