// After tsc: the command is what its package says it is, and executable.
import { chmodSync, readFileSync } from 'node:fs'

const command = new URL('../dist/src/cli/main.js', import.meta.url)
if (!readFileSync(command, 'utf8').startsWith('#!/usr/bin/env node\n'))
  throw new Error('dist/src/cli/main.js has no shebang')
chmodSync(command, 0o755)
