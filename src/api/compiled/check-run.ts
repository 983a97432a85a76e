/** Checks of the options of calls on a prepared kernel. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { RefOptions } from '../../reference/index.ts'
import type { ExplainOptions } from '../../run/explain/index.ts'
import { expectArgument, expectFlag, expectOptions } from '../inputs/argument-checks.ts'

/** Throws SptError `api/argument` or `api/unknown-option` for invalid options. */
export function checkExplain(options: ExplainOptions): void {
  expectOptions('explain', options, ['time'])
  expectFlag('time', options.time)
}

/**
 * Checks the options of `verify`; an empty sample would pass without comparing anything. Throws SptError `api/argument`,
 * `api/unknown-option`.
 */
export function checkVerify(options: RefOptions): void {
  expectOptions('verify', options, ['sample'])
  const { sample } = options
  if (sample === undefined) return
  expectOptions('the sample', sample, ['fraction', 'count', 'seed'])
  const { fraction, count, seed } = sample
  if ((fraction === undefined) === (count === undefined))
    fail({
      code: 'api/argument',
      message: `a sample has ${count === undefined ? 'neither a count nor a fraction' : 'a count and a fraction'}`,
      expected: 'a count or a fraction: { count: 100 } or { fraction: 0.1 }',
    })
  const isPart = fraction === undefined || (typeof fraction === 'number' && fraction > 0 && fraction <= 1)
  expectArgument(isPart, 'the fraction of a sample', fraction, 'a number above 0, and at most 1')
  const isCount = count === undefined || (Number.isSafeInteger(count) && count >= 1)
  expectArgument(isCount, 'the count of a sample', count, 'an integer from 1 on')
  const isSeed = seed === undefined || Number.isSafeInteger(seed)
  expectArgument(isSeed, 'the seed of a sample', seed, 'an integer, or none for 0')
}
