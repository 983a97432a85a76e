#!/usr/bin/env node
import { tooOld } from '../io/package.ts'

const problem = tooOld()
if (problem !== null) {
  process.stderr.write(`spt: ${problem}\n`)
  process.exit(1)
}
// Traces name the sources.
if (process.env.SPT_DEBUG === '1') process.setSourceMapsEnabled(true)
// Not before: what an old Node lacks fails as it is loaded.
const [{ main }, { processIo }] = await Promise.all([import('./index.ts'), import('./io.ts')])
const code = await main(process.argv.slice(2), processIo())
// Some drivers keep the process alive; what was written has to arrive first.
// Where one cannot be written, `processIo` ends the process.
process.stdout.write('', (lost) => {
  if (!lost) process.stderr.write('', () => process.exit(code))
})
