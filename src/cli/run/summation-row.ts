import type { UnorderedSum } from '../../run/verify/summation-order.ts'

/** Report row on bitwise reproducibility. */
export function summationRow(sums: readonly UnorderedSum[]): readonly [string, string] {
  if (sums.length === 0) return ['sums', 'in a fixed order: equal inputs give equal bits']
  const launches = new Map<string, number>()
  for (const { buffer, reducer } of sums)
    launches.set(`${buffer} (${reducer})`, (launches.get(`${buffer} (${reducer})`) ?? 0) + 1)
  const sumTexts = [...launches].map(([sum, n]) => (n > 1 ? `${sum} in ${n} launches` : sum))
  return [
    'sums',
    `NOT REPRODUCIBLE: threads update ${sumTexts.join(', ')} atomically in any order, so runs differ in the last bits`,
  ]
}
