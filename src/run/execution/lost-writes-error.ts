/**
 * The error of a run that writes elements that are not stored. Devices report only the buffers. The reference, run on the same data within
 * a limit, names the first coordinate.
 */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { isDense } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Bound } from '../bind/index.ts'
import { expectedOf } from '../bind/results/reference-inputs.ts'

/** Upper bound in bytes on data for the reference, which uses several float64 per element. */
const MOST_BYTES = 2 ** 26
/** Upper bound on visited coordinates: at most about one second. */
const MOST_VISITS = 2 ** 21

export interface Run {
  readonly source: Kernel1
  readonly bound: Bound
  readonly bytes: number
}

/** Returns the error. `run`: undefined if the data is not on the host. */
export function lostWrites(kernel: string, buffers: readonly string[], run: Run | undefined): SptError {
  const names = buffers.join(' and ')
  const first = run && firstLost(run)
  const found = first instanceof SptError ? first.diagnostics[0]! : null
  const dense = run?.source.axes.filter((a) => isDense(a)).map((a) => a.name) ?? []
  const areDense = (name: string): boolean =>
    run?.source.buffers.find((b) => b.name === name)?.axes.every((a) => dense.includes(a)) ?? false
  const remedy = buffers.every(areDense)
    ? 'its sizes must hold all that is written'
    : `bind ${names} with a structure that holds all that is written`
  const more = typeof first === 'string' ? ` (no coordinate is named: ${first})` : ''
  return new SptError({
    code: 'run/lost-writes',
    message: `${kernel} writes elements of ${names} that do not exist${found ? `: ${found.message}` : ''}`,
    ...(found?.span && { span: found.span }),
    expected: 'writes to coordinates that the buffer holds',
    hint: `${remedy}, or guard the write with if${more}`,
  })
}

/**
 * The reference's error, or a text why no coordinate is known; null if the reference loses no write (for example because devices round
 * sums differently).
 */
function firstLost({ source, bound, bytes }: Run): SptError | string | null {
  if (bytes > MOST_BYTES) return `it is looked for in tensors of up to ${MOST_BYTES / 2 ** 20} MiB`
  try {
    expectedOf(source, bound, { visits: MOST_VISITS })
    return null
  } catch (error) {
    const code = error instanceof SptError ? error.code : null
    if (code === 'reference/absent-target') return error as SptError
    return code === 'reference/too-long' ? `the first ${MOST_VISITS} iterations lose nothing` : null
  }
}
