/** Parameters of patterns. */
import { fail } from '../../ast/diagnostic.ts'
import { show } from '../../ast/expect-argument.ts'

/** Sides of tiles, blocks and groups. */
const MOST = 65536

/** @throws SptError `prune/parameter` */
export function checkParameter(what: string, n: unknown, least = 1, most = MOST): void {
  if (Number.isInteger(n) && (n as number) >= least && (n as number) <= most) return
  fail({
    code: 'prune/parameter',
    message: `${what} cannot be ${show(n)}`,
    expected: `an integer from ${least} to ${most}`,
  })
}

export const checkGranularity = (n: unknown): void => checkParameter('granularity', n)

/** Bytes of a stored index. */
export const INDEX_BYTES = 4

export const kept = (mask: Uint8Array): number => {
  let n = 0
  for (let i = 0; i < mask.length; i++) n += mask[i]!
  return n
}

/** Values with a column each, and where rows begin (CSR). */
export const elementBytes = (n: number, rows: number, valueBytes: number): number =>
  n * (valueBytes + INDEX_BYTES) + (rows + 1) * INDEX_BYTES
