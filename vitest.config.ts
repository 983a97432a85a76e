import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 60_000,
    // The machine that runs CI has two cores; each file in its own process keeps a GPU fault in its own file.
    pool: 'forks',
    maxWorkers: 2,
  },
})
