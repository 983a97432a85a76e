#!/usr/bin/env node
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { oldNodeMessage } from '../io/package/package.ts'
import { processIo } from './output/io.ts'
import { handleVersionFlag } from './version.ts'

/** `index.ts` bundled with its imports. */
const SCRIPT = fileURLToPath(new URL('commands.cjs', import.meta.url))
type Script = typeof import('./index.ts')

const problem = oldNodeMessage()
if (problem !== null) {
  process.stderr.write(`spt: ${problem}\n`)
  process.exit(1)
}
// Prepared kernels of a command end with the process, so leaks are not reported.
process.env.SPT_LEAKS ??= '0'
const argv = process.argv.slice(2)
const io = processIo()
const code = handleVersionFlag(argv[0], io) ? 0 : await runCommand()
// Some drivers keep the process alive, so it exits once both streams are flushed.
// On a write error, `processIo` ends the process.
process.stdout.write('', (error) => {
  if (!error) process.stderr.write('', () => process.exit(code))
})

async function runCommand(): Promise<number> {
  if (process.env.SPT_DEBUG === '1') {
    // Stack traces refer to the TypeScript sources.
    process.setSourceMapsEnabled(true)
    return (createRequire(SCRIPT)(SCRIPT) as Script).main(argv, io)
  }
  // Imported here, because an old Node fails while loading this module.
  const { runScript } = await import('./script.ts')
  const { exports, storeCode: storeCodeCache } = await runScript<Script>(SCRIPT, argv[0] ?? '')
  const code = await exports.main(argv, io)
  // A command that fails early has compiled few functions.
  if (code === 0) await storeCodeCache()
  return code
}
