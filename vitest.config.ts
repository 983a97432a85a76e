import { readdirSync, readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { nativeSources } from './test/support/native-sources.ts'
import { TIME_LIMIT } from './test/support/time-limit.ts'

// A new seed for every run. `npm test` runs a third of the cases of each property (a sixth of costly ones), `--mode long` twenty times all of them.
process.env.SPT_SEED ??= String(Math.floor(Math.random() * 2 ** 31))

const testFiles = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((f) => `test/${f}`)
  .filter((f) => f.endsWith('.test.ts'))

/**
 * Files left out with `SPT_TURNS=n` (`.ci/run`): a run has one file in n of these folders, whose code no compiled kernel depends on.
 * The seed chooses, so that n runs of consecutive seeds have all.
 */
const turns = Number(process.env.SPT_TURNS ?? 1)
const leftOut = testFiles
  .filter((f) => /^test\/(bench|cli|notebook|prune|search)\//.test(f))
  .filter((_, k) => k % turns !== Number(process.env.SPT_SEED) % turns)

/** Files that replace modules, or variables of the process: each runs in a process of its own; all others share one process for each core. */
const apart = testFiles.filter((f) =>
  /\bvi\.(mock|hoisted|stub)|process\.env\.\w+ = /.test(readFileSync(f, 'utf8')),
)

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
