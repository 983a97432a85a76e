import { defineConfig } from 'vitest/config'

// Every run draws a seed; `--mode long` (npm run test:long) takes ten times as many cases of every law.
process.env.SPT_SEED ??= String(Math.floor(Math.random() * 2 ** 31))

/** Files that replace modules, or whose device may take its process with it. */
const ISOLATED = ['test/convert/cuda.test.ts', 'test/runtime/webgpu.test.ts', 'test/browser/*.test.ts']

export default defineConfig(({ mode }) => {
  const long = mode === 'long'
  process.env.SPT_RUNS ??= long ? '10' : '1'
  console.error(`SPT_SEED=${process.env.SPT_SEED} SPT_RUNS=${process.env.SPT_RUNS}`)
  const shared = {
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 60_000 * Math.max(1, Number(process.env.SPT_RUNS)),
    pool: 'forks' as const,
  }
  return {
    test: {
      // The machine that runs CI has two cores.
      maxWorkers: 2,
      projects: [
        // Modules are loaded, and compiled, once in each process.
        {
          test: {
            ...shared,
            name: 'shared',
            include: ['test/**/*.test.ts'],
            exclude: ISOLATED,
            isolate: false,
          },
        },
        { test: { ...shared, name: 'isolated', include: ISOLATED } },
      ],
    },
  }
})
