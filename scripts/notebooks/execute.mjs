// Runs notebooks in Deno's Jupyter kernel, with nothing outside of this folder and, where the system lets us, no network.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { readNotebook } from './document.mjs'

const root = resolve(import.meta.dirname, '../..')

/** The binary of the npm package, which needs no script of its installation to have run. */
function denoOf() {
  const name = process.platform === 'win32' ? 'deno.exe' : 'deno'
  const { resolve: find } = createRequire(join(root, 'package.json'))
  const libc = process.platform === 'linux' ? '-glibc' : ''
  try {
    return join(dirname(find(`@deno/${process.platform}-${process.arch}${libc}/package.json`)), name)
  } catch {
    return spawnSync('deno', ['--version']).status === 0 ? 'deno' : undefined
  }
}

/** A Python that has nbclient: the one of the path, or the system's, which is Debian's packages'. */
const pythonOf = () =>
  ['python3', '/usr/bin/python3'].find((p) => spawnSync(p, ['-c', 'import nbclient']).status === 0)

/** Why notebooks cannot be executed here; `undefined` where they can. */
export function missing() {
  const absent = []
  if (denoOf() === undefined) absent.push('deno (npm)')
  if (pythonOf() === undefined) absent.push('nbclient for python3 (Debian: python3-nbclient)')
  if (!existsSync(join(root, 'dist/src/notebook.js'))) absent.push('build (npm run build)')
  return absent.length > 0 ? `there is no ${absent.join(', and no ')}` : undefined
}

/** A shell's line that runs what follows without a network but for the loopback that Jupyter talks over. */
const ISOLATED = ['unshare', '-rn', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']

/**
 * Runs notebooks from top to bottom.
 * @param jobs how many run concurrently
 * @param edited gives the notebook that is executed instead of one
 * @returns the executed notebooks by path, and whether there was no network
 * @throws with what the kernel said, where a cell fails
 */
export function executed(paths, jobs = 1, edited = (notebook) => notebook) {
  const work = mkdtempSync(join(tmpdir(), 'spt-notebooks-'))
  try {
    const kernel = join(work, 'data/kernels/deno')
    const [given, out] = [join(work, 'in'), join(work, 'out')]
    for (const folder of [kernel, given, out]) mkdirSync(folder, { recursive: true })
    for (const path of paths)
      writeFileSync(join(given, basename(path)), JSON.stringify(edited(readNotebook(path))))
    const argv = [denoOf(), 'jupyter', '--kernel', '--conn', '{connection_file}']
    writeFileSync(
      join(kernel, 'kernel.json'),
      JSON.stringify({ argv, display_name: 'Deno', language: 'typescript' }),
    )
    const alone = spawnSync(ISOLATED[0], [...ISOLATED.slice(1), 'true']).status === 0
    const command = [
      ...(alone ? ISOLATED : []),
      ...[pythonOf(), join(import.meta.dirname, 'execute.py'), String(jobs), join(root, 'notebooks'), out],
      ...paths.map((p) => join(given, basename(p))),
    ]
    const { status, stderr, error } = spawnSync(command[0], command.slice(1), {
      encoding: 'utf8',
      cwd: root,
      maxBuffer: 2 ** 26,
      env: {
        ...process.env,
        NO_COLOR: '1',
        DENO_NO_UPDATE_CHECK: '1',
        DENO_DIR: join(work, 'deno'),
        JUPYTER_DATA_DIR: join(work, 'data'),
        JUPYTER_CONFIG_DIR: join(work, 'config'),
        JUPYTER_RUNTIME_DIR: join(work, 'runtime'),
      },
    })
    if (error) throw error
    if (status !== 0) throw new Error(stderr.slice(Math.max(0, stderr.indexOf('An error occurred'))))
    return {
      alone,
      notebooks: new Map(paths.map((p) => [p, readNotebook(join(out, basename(p)))])),
    }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
