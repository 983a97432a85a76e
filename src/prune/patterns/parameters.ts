/** Checks of pattern parameters, and sizes of stored elements. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { show } from '../../ast/diagnostics/expect-argument.ts'

/** Maximum side of tiles, blocks and groups. */
const MAX_SIDE = 65536

/** @throws SptError `prune/parameter` */
export function checkParameter(subject: string, n: unknown, min = 1, max = MAX_SIDE): void {
  if (Number.isInteger(n) && (n as number) >= min && (n as number) <= max) return
  failWith('prune/parameter', `${subject} cannot be ${show(n)}`, {
    expected: `an integer from ${min} to ${max}`,
  })
}

export const checkGranularity = (n: unknown): void => checkParameter('granularity', n)

/** Bytes of a stored index. */
export const INDEX_BYTES = 4

/** Bytes in CSR: values, a column index for each, and row pointers. */
export const elementBytes = (n: number, rows: number, valueBytes: number): number =>
  n * (valueBytes + INDEX_BYTES) + (rows + 1) * INDEX_BYTES
