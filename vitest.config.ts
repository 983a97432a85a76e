import { readdirSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { nativeSources } from './test/support/native-sources.ts'
import { TIME_LIMIT } from './test/support/time-limit.ts'

// A new seed for every run. `npm test` runs a third of the cases of each property (a sixth of costly ones), `--mode long` twenty times all of them.
process.env.SPT_SEED ??= String(Math.floor(Math.random() * 2 ** 31))

const testFiles = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((f) => `test/${f}`)
  .filter((f) => f.endsWith('.test.ts'))

/** Seconds of the files that take longest (`scripts/test-costs.mjs`). */
const seconds = new Map(
  readFileSync('test/support/costs.txt', 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
    .map(([cost, file]) => [file!, Number(cost)]),
)
const secondsOf = (file: string): number => seconds.get(file) ?? 0

/**
 * Files left out with `SPT_TURNS=n` (`.ci/run`): a run has one in n of the files that take longest, and of those in the
 * folders whose code no compiled kernel depends on. The seed chooses; parts take equally long, and n of them have all.
 */
const turns = Number(process.env.SPT_TURNS ?? 1)
const leftOut = testFiles
  .filter((f) => seconds.has(f) || /^test\/(bench|cli|notebook|prune|search)\//.test(f))
  .sort((a, b) => secondsOf(b) - secondsOf(a))
  .filter((_, k) => {
    const [row, column] = [Math.floor(k / turns), k % turns]
    return (row % 2 ? turns - 1 - column : column) !== Number(process.env.SPT_SEED) % turns
  })

/** Files that replace modules, or variables of the process: each runs in a process of its own; all others share one process for each core. */
const apart = testFiles.filter((f) =>
  /\bvi\.(mock|hoisted|stub)|process\.env\.\w+ = /.test(readFileSync(f, 'utf8')),
)

/** The longest files first, so that no core is idle at the end; before them those with processes of their own. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const cost = ({ project, moduleId }: TestSpecification): number =>
      (project.name === 'apart' ? 1e6 : 0) + secondsOf(relative('.', moduleId))
    return [...files].sort((a, b) => cost(b) - cost(a))
  }
}

export default defineConfig(async ({ mode }) => {
  const long = mode === 'long'
  process.env.SPT_RUNS ??= long ? '20' : String(1 / 3)
  console.error(`SPT_SEED=${process.env.SPT_SEED} SPT_RUNS=${process.env.SPT_RUNS}`)
  const common = {
    setupFiles: ['test/support/setup.ts'],
    hookTimeout: TIME_LIMIT,
    testTimeout: TIME_LIMIT * Math.max(1, Number(process.env.SPT_RUNS)),
    pool: 'forks' as const,
    execArgv: [
      // Programs are trees that are rewritten: most of what is allocated is short-lived, and dies before a space of this size is full.
      '--min-semi-space-size=128',
      '--max-semi-space-size=128',
      // The other core has tests of its own.
      '--single-threaded-gc',
      // Most code of a compiler runs a few times a test: compiled well only after eight times as much work as usual.
      '--interrupt-budget=540672',
    ],
  }
  return {
    test: {
      // The machine that runs CI has two cores.
      maxWorkers: 2,
      sequence: { sequencer: LongestFirst },
      projects: [
        {
          plugins: process.argv.includes('run') ? [await nativeSources()] : [],
          test: {
            ...common,
            name: 'shared',
            include: ['test/**/*.test.ts'],
            exclude: [...apart, ...leftOut],
            isolate: false,
          },
        },
        { test: { ...common, name: 'apart', include: apart, exclude: leftOut } },
      ],
    },
  }
})
