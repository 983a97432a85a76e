/** The rows of a run's report that depend on --verbose. */
import { expect, test } from 'vitest'
import { type Report, reportText } from '../../src/cli/run/run-report.ts'

test('alternatives to the selected schedule are listed with --verbose only', () => {
  const form = (text: string, milliseconds: number) => ({ text, milliseconds, costModel: null })
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
