// Stores the seconds of the test files that take longest, by which vitest.config.ts orders files and splits them into turns:
// `npx vitest run --reporter=json --outputFile=FILE`, then `node scripts/test-costs.mjs FILE`.
import { readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'

const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const rows = testResults
  .map(({ name, startTime, endTime }) => [Math.round((endTime - startTime) / 1000), relative('.', name)])
  .filter(([seconds]) => seconds >= 2)
  .sort(([a, f], [b, g]) => b - a || (f < g ? -1 : 1))
writeFileSync('test/support/costs.txt', rows.map((row) => `${row.join(' ')}\n`).join(''))
