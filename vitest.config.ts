import { defineConfig } from 'vitest/config'

// Every run draws a seed; `--mode long` (npm run test:long) takes ten times as many cases of every law.
process.env.SPT_SEED ??= String(Math.floor(Math.random() * 2 ** 31))

export default defineConfig(({ mode }) => {
  const long = mode === 'long'
  process.env.SPT_RUNS ??= long ? '10' : '1'
  console.error(`SPT_SEED=${process.env.SPT_SEED} SPT_RUNS=${process.env.SPT_RUNS}`)
  return {
    test: {
      include: ['test/**/*.test.ts'],
      setupFiles: ['test/support/setup.ts'],
      testTimeout: 180_000 * Math.max(1, Number(process.env.SPT_RUNS)),
      // The machine that runs CI has two cores; each file in its own process keeps a GPU fault, and a replaced module, in
      // its own file.
      pool: 'forks',
      maxWorkers: 2,
    },
  }
})
