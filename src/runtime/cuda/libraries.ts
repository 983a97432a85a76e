/** Candidate locations of CUDA's libraries and headers. The file system is a parameter, so that tests need no installation. */
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

export interface Machine {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  exists(path: string): boolean
  /** Names in a folder; empty if it cannot be read. */
  list(folder: string): readonly string[]
  /** The path with symbolic links resolved; the path itself on errors. */
  real(path: string): string
}

export function thisMachine(): Machine {
  return {
    env: process.env,
    home: homedir(),
    exists: existsSync,
    list: (folder) => {
      try {
        return readdirSync(folder)
      } catch {
        return []
      }
    },
    real: (path) => {
      try {
        return realpathSync(path)
      } catch {
        return path
      }
    },
  }
}

const unique = (paths: readonly string[]): string[] => [...new Set(paths.filter((p) => p !== ''))]

/** Newest first: `cuda-13.0` before `cuda-12.9`, `libnvrtc.so.13` before `.12`. */
const newestFirst = (names: readonly string[]): string[] =>
  [...names].sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))

/**
 * Candidate paths of the driver's library, in order. A bare name is resolved by the system's loader; the folders are mounted by
 * containers and WSL without an entry in the loader's configuration.
 */
export function driverCandidates(machine: Machine, explicit?: string): string[] {
  if (explicit) return [explicit]
  const path = machine.env.SPT_LIBCUDA
  if (path) return [path]
  const folders = ['/usr/local/nvidia/lib64', '/usr/lib/wsl/lib', '/usr/lib/x86_64-linux-gnu', '/usr/lib64']
  return ['libcuda.so.1', ...folders.map((f) => join(f, 'libcuda.so.1')).filter((p) => machine.exists(p))]
}

/** `site-packages` folders of Python installations: those of an active environment before those of the system. */
export function sitePackages(machine: Machine): string[] {
  const { env } = machine
  const prefixes = [env.VIRTUAL_ENV, env.CONDA_PREFIX].filter((p): p is string => !!p)
  for (const folder of (env.PATH ?? '').split(':')) {
    if (folder.startsWith('/') && machine.exists(join(folder, 'python3'))) prefixes.push(dirname(folder))
  }
  prefixes.push(join(machine.home, '.local'), '/usr/local', '/usr')
  const sites = (env.PYTHONPATH ?? '').split(':').filter((p) => p.startsWith('/'))
  for (const prefix of unique(prefixes)) {
    const lib = join(prefix, 'lib')
    for (const version of newestFirst(machine.list(lib)).filter((n) => /^python3(\.\d+)?$/.test(n))) {
      sites.push(join(lib, version, 'site-packages'), join(lib, version, 'dist-packages'))
    }
  }
  return unique(sites).filter((p) => machine.exists(p))
}

/** Folders of the NVIDIA wheels of CUDA 13 (`cu13`), 12 and 11. */
function wheelFolders(machine: Machine, leaf: 'lib' | 'include'): string[] {
  const folders: string[] = []
  for (const site of sitePackages(machine)) {
    const nvidia = join(site, 'nvidia')
    const combined = newestFirst(machine.list(nvidia).filter((n) => /^cu\d+$/.test(n)))
    const parts = leaf === 'lib' ? ['cuda_nvrtc'] : ['cuda_runtime', 'cuda_nvrtc', 'cuda_cccl']
    for (const name of [...combined, ...parts]) folders.push(join(nvidia, name, leaf))
  }
  return folders
}

/** Toolkit folders: configured by environment variables, and in standard locations. */
function toolkits(machine: Machine): { configured: string[]; standard: string[] } {
  const { env } = machine
  const configured = unique([env.CUDA_HOME ?? '', env.CUDA_PATH ?? ''])
  const versioned = newestFirst(machine.list('/usr/local').filter((n) => /^cuda-\d/.test(n)))
  return {
    configured,
    standard: unique(['/usr/local/cuda', ...versioned.map((n) => join('/usr/local', n)), '/opt/cuda']),
  }
}

const LIB_FOLDERS = ['lib64', 'lib', 'targets/x86_64-linux/lib', 'targets/sbsa-linux/lib']

/**
 * Candidate paths of NVRTC, in order: an explicit path, the configured toolkit, wheels of an active Python or Conda environment,
 * names for the loader, standard toolkit folders.
 */
export function nvrtcCandidates(machine: Machine, explicit?: string): string[] {
  const path = explicit ?? machine.env.SPT_NVRTC
  if (path) return [path]
  const inFolder = (folder: string): string[] =>
    newestFirst(machine.list(folder).filter((n) => /^libnvrtc\.so(\.\d+)*$/.test(n))).map((n) =>
      join(folder, n),
    )
  const { configured, standard } = toolkits(machine)
  const conda = machine.env.CONDA_PREFIX ? [join(machine.env.CONDA_PREFIX, 'lib')] : []
  const inFolders = (folders: readonly string[]): string[] => folders.flatMap(inFolder)
  const libsOf = (roots: readonly string[]): string[] =>
    roots.flatMap((root) => LIB_FOLDERS.map((leaf) => join(root, leaf)))
  const byLoader = ['libnvrtc.so', 'libnvrtc.so.13', 'libnvrtc.so.12', 'libnvrtc.so.11.2']
  const candidates = [
    ...inFolders(libsOf(configured)),
    ...inFolders(conda),
    ...inFolders(wheelFolders(machine, 'lib')),
    ...byLoader,
    ...inFolders(libsOf(standard)),
  ]
  const seenPaths = new Set<string>()
  return candidates.filter((path) => {
    const key = path.startsWith('/') ? machine.real(path) : path
    if (seenPaths.has(key)) return false
    seenPaths.add(key)
    return true
  })
}

/**
 * Candidate paths of a library installed with NVRTC, in search order: the folders of NVRTC may contain it; wheels of older
 * toolkits use a folder per library.
 */
export function libraryCandidates(machine: Machine, file: string, folder: string): string[] {
  const paths = nvrtcCandidates(machine)
    .filter((path) => path.startsWith('/'))
    .flatMap((nvrtc) => [dirname(nvrtc), join(dirname(nvrtc), '../..', folder, 'lib')])
    .flatMap((dir) =>
      newestFirst(machine.list(dir).filter((n) => n.startsWith(`${file}.so`))).map((n) => join(dir, n)),
    )
  return unique([...paths, `${file}.so`, `${file}.so.13`, `${file}.so.12`])
}

/**
 * Paths of `libnvrtc-builtins` next to NVRTC. NVRTC opens this library by bare name, which the loader does not find in the folder
 * of a wheel, so it is first loaded by path.
 */
export function builtinsLibraries(machine: Machine, nvrtc: string): string[] {
  if (!nvrtc.startsWith('/')) return []
  const folders = unique([dirname(nvrtc), dirname(machine.real(nvrtc))])
  return folders.flatMap((folder) =>
    machine
      .list(folder)
      .filter((n) => /^libnvrtc-builtins\.so\.[\d.]+$/.test(n))
      .map((n) => join(folder, n)),
  )
}

/**
 * Candidate folders of CUDA's headers, those next to NVRTC first, so that headers and compiler match. `nvrtc` is a path, or a
 * bare name if the loader found it.
 */
export function includeCandidates(machine: Machine, nvrtc: string | undefined): string[] {
  const adjacent: string[] = []
  if (nvrtc?.startsWith('/')) {
    for (const path of [nvrtc, machine.real(nvrtc)]) {
      const lib = dirname(path)
      adjacent.push(
        join(lib, '../include'),
        join(lib, '../../cuda_runtime/include'),
        join(lib, '../../../include'),
      )
    }
  }
  const { configured, standard } = toolkits(machine)
  const { CONDA_PREFIX } = machine.env
  const conda = CONDA_PREFIX
    ? [join(CONDA_PREFIX, 'include'), join(CONDA_PREFIX, 'targets/x86_64-linux/include')]
    : []
  const includeFolders = (roots: readonly string[]): string[] => roots.map((root) => join(root, 'include'))
  return unique([
    ...adjacent,
    ...includeFolders(configured),
    ...conda,
    ...wheelFolders(machine, 'include'),
    ...includeFolders(standard),
    '/usr/include',
  ])
}

export function includedHeaders(text: string): string[] {
  const names: string[] = []
  for (const match of text.matchAll(/^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]/gm)) names.push(match[1]!)
  return unique(names)
}

/** Include folders (`-I`) of the headers, and the headers that were not found. */
export function resolveHeaders(
  machine: Machine,
  headers: readonly string[],
  folders: readonly string[],
): { readonly include: readonly string[]; readonly missing: readonly string[] } {
  const include: string[] = []
  const missing: string[] = []
  for (const header of headers) {
    const folder = folders.find((f) => machine.exists(join(f, header)))
    if (folder === undefined) missing.push(header)
    else {
      include.push(folder)
      // From CUDA 13 on, headers that these include (`nv/target`) are in the subfolder `cccl`.
      const cccl = join(folder, 'cccl')
      if (machine.exists(cccl)) include.push(cccl)
    }
  }
  return { include: unique(include), missing }
}
