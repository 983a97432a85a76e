/**
 * The error of writes whose elements do not exist. Devices tell the buffers alone; the reference, on the same data,
 * names the first coordinate, where it gets there in a moment.
 */

import { SptError } from '../ast/diagnostic.ts'
import { isDense } from '../ir/axis.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Bound } from './bind/index.ts'
import { expectedOf } from './bind/reference-inputs.ts'

/** Tensors of more bytes are not brought to the reference, which holds several float64 for each element. */
const MOST_BYTES = 2 ** 26
/** A second or less. */
const MOST_VISITS = 2 ** 21

interface Run {
  readonly source: Kernel1
  readonly bound: Bound
  readonly bytes: number
}

/** `run`: none where its data are not on the host. */
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

/** The reference's error, or why there is none; null where the reference loses nothing (sums that devices round, say). */
function firstLost({ source, bound, bytes }: Run): SptError | string | null {
  if (bytes > MOST_BYTES) return `it is looked for in tensors of up to ${MOST_BYTES / 2 ** 20} MiB`
  try {
    expectedOf(source, bound, { visits: MOST_VISITS })
    return null
  } catch (error) {
    const code = error instanceof SptError ? error.diagnostics[0]!.code : null
    if (code === 'reference/absent-target') return error as SptError
    return code === 'reference/too-long' ? `the first ${MOST_VISITS} iterations lose nothing` : null
  }
}
