/** The tests over sources that contain the sampled mutants: `MUTANTS` names their list, `MUTANT` the one that is switched on. */
import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { withMutants } from './mutants.mjs'

const root = new URL('../..', import.meta.url).pathname
const mutants = JSON.parse(readFileSync(process.env.MUTANTS, 'utf8'))

export default defineConfig({
  root,
  plugins: [
    {
      name: 'mutants',
      enforce: 'pre',
      transform(code, id) {
        const own = mutants.filter((m) => `${root}${m.file}` === id)
        return own.length > 0 ? { code: withMutants(code, own), map: null } : undefined
      },
    },
  ],
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['scripts/mutate/setup.mjs', 'test/support/setup.ts'],
    testTimeout: 60_000,
    pool: 'forks',
    maxWorkers: Number(process.env.MUTATE_WORKERS ?? 1),
    // Which file reaches a mutant is known only where no other has loaded or kept what it needs.
    isolate: process.env.MUTANT === undefined,
  },
})
