#!/usr/bin/env node
import { main } from './index.ts'
import { processIo } from './io.ts'

const code = await main(process.argv.slice(2), processIo())
// Some drivers keep the process alive; what was written has to arrive first.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
