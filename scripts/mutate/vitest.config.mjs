/** The tests of a build that contains the drawn mutants: `BUILD` is its folder, `MUTANT` the one that is switched on. */
import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'

const root = `${process.cwd()}/${process.env.BUILD}`
const order = process.env.CHOSEN
  ? JSON.parse(readFileSync(process.env.CHOSEN, 'utf8')).map(([file]) => `${root}/${file}`)
  : undefined

/** Files in the order in which they were chosen. */
class Chosen extends BaseSequencer {
  async sort(files) {
    const at = (f) => order.indexOf(f.moduleId)
    return order ? [...files].sort((a, b) => at(a) - at(b)) : super.sort(files)
  }
}

export default defineConfig({
  root,
  test: {
    include: ['test/**/*.test.js'],
    exclude: [],
    setupFiles: ['scripts/mutate/setup.mjs', 'test/support/setup.js'],
    testTimeout: 60_000,
    // Sources and tests' own modules are loaded as they are.
    server: { deps: { external: [/\/build\/(src|grammar|test\/(?!.*\.test\.js))/] } },
    pool: 'forks',
    maxWorkers: Number(process.env.MUTATE_WORKERS ?? 1),
    // Which file reaches a mutant is known only where no other has loaded what it needs.
    isolate: order === undefined,
    sequence: { sequencer: Chosen },
  },
})
