// After tsc: what has lost its source is gone from dist, the command is what its package says it is, and executable.
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')

for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  const [, name] = /^(.*?)(?:\.d\.ts|\.js)(?:\.map)?$/.exec(file) ?? []
  if (name !== undefined && !['.ts', '.js', '.d.ts'].some((e) => existsSync(join(root, name + e))))
    rmSync(join(dist, file))
}

const command = join(dist, 'src/cli/main.js')
if (!readFileSync(command, 'utf8').startsWith('#!/usr/bin/env node\n'))
  throw new Error('dist/src/cli/main.js has no shebang')
chmodSync(command, 0o755)
