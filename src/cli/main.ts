#!/usr/bin/env node
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { tooOld } from '../io/package.ts'
import { processIo } from './io.ts'
import { printsVersion } from './version.ts'

/** `index.ts` with all that it imports, as one script. */
const SCRIPT = fileURLToPath(new URL('commands.cjs', import.meta.url))
type Script = typeof import('./index.ts')

const problem = tooOld()
if (problem !== null) {
  process.stderr.write(`spt: ${problem}\n`)
  process.exit(1)
}
// Kernels that a command prepares are not the user's to free.
process.env.SPT_LEAKS ??= '0'
const argv = process.argv.slice(2)
const io = processIo()
const code = printsVersion(argv[0], io) ? 0 : await commanded()
// Some drivers keep the process alive; what was written has to arrive first.
// Where one cannot be written, `processIo` ends the process.
process.stdout.write('', (lost) => {
  if (!lost) process.stderr.write('', () => process.exit(code))
})

async function commanded(): Promise<number> {
  if (process.env.SPT_DEBUG === '1') {
    // Traces name the sources.
    process.setSourceMapsEnabled(true)
    return (createRequire(SCRIPT)(SCRIPT) as Script).main(argv, io)
  }
  // Not before: what an old Node lacks fails as it is loaded.
  const { runScript } = await import('./script.ts')
  const { exports, keep } = await runScript<Script>(SCRIPT, argv[0] ?? '')
  const code = await exports.main(argv, io)
  // One that fails early has not compiled what others need.
  if (code === 0) await keep()
  return code
}
