#!/usr/bin/env node
import * as node from 'node:module'
import { cacheFolder } from '../cache/disk-cache.ts'
import { oldNodeMessage } from '../io/package/package.ts'
import { handleVersionFlag, processIo } from './output/io.ts'

const problem = oldNodeMessage()
if (problem !== null) {
  process.stderr.write(`spt: ${problem}\n`)
  process.exit(1)
}
// Prepared kernels of a command end with the process, so leaks are not reported.
process.env.SPT_LEAKS ??= '0'
const argv = process.argv.slice(2)
const io = processIo()
const code = handleVersionFlag(argv, io) ? 0 : await runCommand()
// Some drivers keep the process alive, so it exits once both streams are flushed.
// On a write error, `processIo` ends the process.
process.stdout.write('', (error) => {
  if (!error) process.stderr.write('', () => process.exit(code))
})

async function runCommand(): Promise<number> {
  // Stack traces refer to the TypeScript sources, if the package has source maps.
  if (process.env.SPT_DEBUG === '1') process.setSourceMapsEnabled(true)
  // Node 22.8 and later keep the code that V8 compiled, because a short command takes longer to compile than to run.
  const { enableCompileCache } = node as { enableCompileCache?(folder: string): void }
  const folder = cacheFolder(undefined)
  if (folder !== undefined) enableCompileCache?.(`${folder}/code`)
  // Imported here, because an old Node fails while loading this module.
  const { main } = await import('./index.ts')
  return main(argv, io)
}
