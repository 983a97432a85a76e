/** Whether CUDA text compiles: through nvcc, where there is one. Nothing runs. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Why nothing can be compiled here, or `null`. */
export const noNvcc: string | null =
  spawnSync('nvcc', ['--version']).status === 0 ? null : 'there is no nvcc on this machine'

function compiled(text: string, to: 'ptx' | 'cubin'): Buffer {
  const dir = mkdtempSync(join(tmpdir(), 'nvcc-'))
  try {
    writeFileSync(join(dir, 'k.cu'), text)
    execFileSync('nvcc', [`-${to}`, '-arch=sm_90', '--std=c++17', 'k.cu'], { cwd: dir, stdio: 'pipe' })
    return readFileSync(join(dir, `k.${to}`))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** The instructions of a text, assembled; equal texts have equal ones. */
export const assembled = (text: string): Buffer => compiled(text, 'cubin')

export const ptxOf = (text: string): string => compiled(text, 'ptx').toString()

/** Compiles each text to PTX, as it is; gives the log of the first that fails, or ''. */
export function compileCuda(texts: readonly string[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'nvcc-'))
  try {
    const files = texts.map((text, k) => {
      const file = join(dir, `k${k}.cu`)
      writeFileSync(file, text)
      return file
    })
    execFileSync('nvcc', ['-ptx', '-arch=sm_90', '--std=c++17', '-odir', dir, ...files], {
      cwd: dir,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return ''
  } catch (e) {
    const { stderr, stdout } = e as { stderr?: Buffer; stdout?: Buffer }
    return `${stderr ?? ''}${stdout ?? ''}` || String(e)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Whether a text is taken is asked, and nothing runs: half of the time went into making it fast. */
const ONLY_TAKEN = ['-Xcicc', '-O1', '-Xptxas', '-O1']

/** Compiles texts in one go, each in a name space of its own; returns what the compiler said where it refused. */
export function compileTogether(texts: readonly string[]): string {
  const includes = new Set<string>()
  const parts = texts.map((text, k) => {
    const lines = text.split('\n')
    for (const l of lines) if (l.startsWith('#include')) includes.add(l)
    const rest = lines.filter((l) => !l.startsWith('#include')).join('\n')
    return `namespace n${k} {\n${rest.replaceAll('extern "C" ', '')}}\n`
  })
  const folder = mkdtempSync(join(tmpdir(), 'spt-nvcc-'))
  try {
    const source = join(folder, 'all.cu')
    writeFileSync(source, `${[...includes].join('\n')}\n${parts.join('\n')}`)
    const r = spawnSync(
      'nvcc',
      ['-gencode=arch=compute_90a,code=sm_90a', ...ONLY_TAKEN, '-cubin', '-o', '/dev/null', source],
      { encoding: 'utf8' },
    )
    return r.status === 0 ? '' : `${r.stdout}${r.stderr}` || `nvcc ended with ${r.status}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
