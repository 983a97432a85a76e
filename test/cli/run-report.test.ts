/** The rows of a run's report that depend on --verbose. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { type Report, reportText } from '../../src/cli/run/run-report.ts'
import { conversions } from '../../src/cli/run/sparse-sizes.ts'
import { progressLine } from '../../src/cli/tune/tune-report.ts'
import { coords } from '../../src/node.ts'
import type { TuneProgress } from '../../src/search/tune/index.ts'

test('alternatives to the selected schedule are listed with --verbose only', () => {
  const form = (text: string, milliseconds: number) => ({ text, milliseconds, costModel: null, plain: [] })
  const report = {
    kernel: 'k',
    device: 'cpu',
    deviceName: 'cpu',
    schedule: null,
    selection: null,
    forms: [form('', 1), form('sum.at = apart', 2)],
    unorderedSums: [],
    sizes: {},
    built: [],
    nnz: {},
    stored: {},
    duplicates: {},
    converted: [],
    zeros: {},
    bytes: 0,
    peak: 0,
    repeat: 1,
    runs: 1,
    time: new Proxy({}, { get: () => 1 }),
    random: [],
    verification: null,
    written: [],
  } as unknown as Report
  const [brief, verbose] = [false, true].map((v) => reportText(report, v))
  for (const text of [brief, verbose]) expect(text).toMatch(/^schedule +default: predicted 1/m)
  expect(brief).not.toContain('apart')
  expect(verbose).toMatch(/^ +default with sum\.at = apart: 2/m)
})

test('values are converted, patterns have none', () => {
  const { kernel } = parseProgram(`kernel k(n: size) {
  axis i = sparse_variable(n)
  buffer A: i32[i] in
  buffer y: i32[] out
  iterate all [i] as R { y[] += A[i] }
}`).kernel().compilation
  const of = (values: Float64Array | null) => conversions(kernel, { A: coords([2], [[1]], values) })
  expect([of(null), of(Float64Array.of(1))]).toEqual([[], ['A: f64 to i32']])
})

test('a line of progress has what there is', () => {
  const line = (more: Partial<TuneProgress>) =>
    progressLine({ trialsDone: 3, knownTrials: 0, rejectedByCode: {}, failed: 0, ...more } as TuneProgress)
  expect(line({})).toBe('3 done, best none, 0 rejected, 0 failed')
  expect(line({ knownTrials: 1 })).toContain('1 known')
  expect(line({ knownTrials: 2, remaining: 4, ranking: 5, comparing: 'default' })).toBe(
    '3 done, 2 known, best none, 0 rejected, 0 failed, 4 left, ranking, 5 points so far, comparing default',
  )
})
