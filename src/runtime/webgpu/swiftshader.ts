/**
 * Vulkan driver for machines without a GPU (Node only): SwiftShader, contained in the npm package `@sparticuz/chromium`.
 * Nothing is downloaded: the package's archive is unpacked once into a cache folder.
 */
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { isMissing, type Missing, reasonOf } from '../../ast/diagnostics/optional-packages.ts'
import { makeFolderSync } from '../../cache/disk-cache.ts'
import { type Koffi, loadKoffi } from '../koffi.ts'

const PACKAGE = '@sparticuz/chromium'
/** 147.0.1 and later require Node 22.17; both versions contain the same files. */
const KNOWN_VERSION = Number(process.versions.node.split('.')[0]) < 23 ? '147.0.0' : '153.0.0'
const INSTALL = `npm i ${PACKAGE}@${KNOWN_VERSION}`
const ARCHIVE = 'swiftshader.tar.br'
const LOADER = 'libvulkan.so.1'
const ICD = 'vk_swiftshader_icd.json'
const LACKS = 'holds no'
const FILES = ['libvk_swiftshader.so', LOADER, ICD]

interface SwiftShader {
  readonly dir: string
  /** A Vulkan loader, for machines that have none. */
  readonly loader: string
  /** The description of the driver, for `VK_DRIVER_FILES`. */
  readonly icd: string
  readonly version: string
}

let located: SwiftShader | Missing | undefined

/** Finds SwiftShader, and unpacks it the first time. */
export function findSwiftShader(): SwiftShader | Missing {
  located ??= locate()
  return located
}

function locate(): SwiftShader | Missing {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return {
      reason: `the packaged software driver is for Linux on x64, not ${process.platform} on ${process.arch}`,
      hint: 'use a GPU, or the cpu device',
    }
  const archive = findArchive()
  if ('reason' in archive) return archive
  const problems: string[] = []
  for (const base of cacheFolders(archive.path)) {
    try {
      const dir = unpack(archive.path, base, archive.version)
      return { dir, loader: join(dir, LOADER), icd: join(dir, ICD), version: archive.version }
    } catch (e) {
      problems.push((e as Error).message)
    }
  }
  return {
    reason: `SwiftShader of ${PACKAGE} could not be unpacked: ${problems.join('; ')}`,
    hint: problems.some((p) => p.includes(LACKS))
      ? `the version that is known to work: ${INSTALL}`
      : 'make the folder for temporary files writable',
  }
}

interface Archive {
  readonly path: string
  readonly version: string
}

/**
 * Candidate folders of the package: resolved from this file, then from the current folder. The package's entry is not used,
 * because its path differs between versions and some versions cannot be loaded by this Node. The archive works with any Node.
 */
const packageFolders = (): string[] =>
  [import.meta.url, pathToFileURL(join(process.cwd(), 'package.json')).href].flatMap((base) =>
    (createRequire(base).resolve.paths(PACKAGE) ?? []).map((modules) => join(modules, PACKAGE)),
  )

/** Finds the archive. @param roots - Candidate folders of the package */
export function findArchive(roots: readonly string[] = packageFolders()): Archive | Missing {
  const incomplete: string[] = []
  for (const root of roots) {
    let version: string
    try {
      version = String(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version)
    } catch {
      continue
    }
    const path = ['bin', 'bin/x64'].map((bin) => join(root, bin, ARCHIVE)).find(existsSync)
    if (path) return { path, version }
    incomplete.push(`${version} in ${root}`)
  }
  if (incomplete.length > 0)
    return {
      reason: `the npm package ${PACKAGE} is installed (${incomplete.join('; ')}), but has no bin/${ARCHIVE}`,
      hint: `the version that is known to work: ${INSTALL}`,
    }
  return {
    reason: `the npm package ${PACKAGE}, which carries a software driver, is not installed`,
    hint: INSTALL,
  }
}

/** Cache folder next to the package, then a temporary folder that only this user can write. */
function cacheFolders(archive: string): string[] {
  const parts = archive.split('/')
  const modules = parts.lastIndexOf('node_modules')
  const packageCache =
    modules < 0 ? [] : [join(parts.slice(0, modules + 1).join('/'), '.cache', 'sparsetile')]
  return [...packageCache, join(tmpdir(), `sparsetile-${process.getuid?.() ?? 'cache'}`)]
}

/** Unpacks into a fresh folder and renames it, so that no process sees a partial one. */
function unpack(archive: string, base: string, version: string): string {
  const dir = join(base, `swiftshader-${version}`)
  makeFolderSync(base, 0o700)
  checkOwner(base)
  if (FILES.every((f) => existsSync(join(dir, f)))) return dir
  const temporary = mkdtempSync(join(base, 'unpack-'))
  try {
    const entries = readTar(brotliDecompressSync(readFileSync(archive)))
    for (const name of FILES) {
      const bytes = entries.get(name)
      if (!bytes) throw new Error(`${archive} ${LACKS} ${name}`)
      writeFileSync(join(temporary, name), bytes)
    }
    chmodSync(temporary, 0o755)
    renameSync(temporary, dir)
  } catch (e) {
    rmSync(temporary, { recursive: true, force: true })
    // Another process may have unpacked it at the same time.
    if (!FILES.every((f) => existsSync(join(dir, f)))) throw e
  }
  return dir
}

/** Checks that only the user can write to the folder, because code is loaded from it. */
function checkOwner(dir: string): void {
  const s = statSync(dir)
  const uid = process.getuid?.()
  if (uid !== undefined && s.uid !== uid && s.uid !== 0) throw new Error(`${dir} belongs to another user`)
  if ((s.mode & 0o002) !== 0) throw new Error(`${dir} can be written by everybody`)
}

const BLOCK = 512

/** The regular files of a ustar archive by base name. */
export function readTar(tar: Uint8Array): Map<string, Uint8Array> {
  const text = (offset: number, length: number): string => {
    const field = new TextDecoder('latin1').decode(tar.subarray(offset, offset + length))
    const end = field.indexOf('\0')
    return end < 0 ? field : field.slice(0, end)
  }
  const files = new Map<string, Uint8Array>()
  for (let offset = 0; offset + BLOCK <= tar.length && tar[offset] !== 0; ) {
    const size = Number.parseInt(text(offset + 124, 12), 8)
    if (!(size >= 0) || offset + BLOCK + size > tar.length) throw new Error('the archive is damaged')
    const type = text(offset + 156, 1)
    if (type === '0' || type === '')
      files.set(basename(text(offset, 100)), tar.subarray(offset + BLOCK, offset + BLOCK + size))
    offset += BLOCK * (1 + Math.ceil(size / BLOCK))
  }
  return files
}

// Prepares Linux for Dawn: loads a Vulkan loader into the process and selects a driver. On other systems Dawn
// uses the native graphics interface, so this module does nothing.

interface Vulkan {
  readonly driver: string
}

type Library = ReturnType<Koffi['load']>

const findKoffi = (): Promise<Koffi | Missing> => loadKoffi('WebGPU without a GPU needs')

/**
 * Loads a Vulkan loader for Dawn and checks that it has a driver. Without a system loader (a container may lack only that), the
 * packaged loader is used. The check runs here because Dawn prints to stderr without a driver.
 */
export async function findVulkan(): Promise<Vulkan | Missing> {
  if (process.platform !== 'linux') return { driver: 'the system' }
  const koffi = await findKoffi()
  // Without koffi, Dawn itself looks for the system's loader.
  if ('reason' in koffi) return { driver: 'the system' }
  let loader: Library
  let driver = 'the system'
  try {
    loader = koffi.load('libvulkan.so.1', { global: true })
  } catch {
    const hint = 'install the GPU driver and libvulkan1'
    const packaged = findSwiftShader()
    if (isMissing(packaged)) return { reason: 'there is no Vulkan loader (libvulkan.so.1)', hint }
    try {
      loader = koffi.load(packaged.loader, { global: true })
    } catch (e) {
      return { reason: `the packaged Vulkan loader cannot be loaded: ${reasonOf(e)}`, hint }
    }
    driver = 'the system, through the packaged Vulkan loader'
  }
  if (countDevices(loader) > 0) return { driver }
  return { reason: 'Vulkan finds no driver: there is no GPU here', hint: 'install the GPU driver' }
}

/** `VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO`, and the size of the structure with 64-bit pointers. */
const INSTANCE_CREATE_INFO = { type: 1, bytes: 64 }

function countDevices(loader: Library): number {
  const createInstance = loader.func('int vkCreateInstance(const void *, const void *, _Out_ void *)')
  const enumerate = loader.func('int vkEnumeratePhysicalDevices(uint64_t, _Inout_ uint32_t *, void *)')
  const destroyInstance = loader.func('void vkDestroyInstance(uint64_t, const void *)')
  const info = Buffer.alloc(INSTANCE_CREATE_INFO.bytes)
  info.writeInt32LE(INSTANCE_CREATE_INFO.type, 0)
  const handle = Buffer.alloc(8)
  if (createInstance(info, null, handle) !== 0) return 0
  const instance = handle.readBigUInt64LE()
  const count = [0]
  const result = enumerate(instance, count, null) as number
  destroyInstance(instance, null)
  return result === 0 ? count[0]! : 0
}

const DRIVER_VARIABLES = ['VK_DRIVER_FILES', 'VK_ICD_FILENAMES']

/** Runs `request` while SwiftShader is the only Vulkan driver that the loader sees. */
export async function withSwiftShader<T>(request: (driver: string) => Promise<T>): Promise<T | Missing> {
  const packaged = findSwiftShader()
  if (isMissing(packaged)) return packaged
  const koffi = await findKoffi()
  if ('reason' in koffi) return koffi
  let restore: () => void
  try {
    koffi.load(packaged.loader, { global: true })
    restore = setDrivers(koffi.load(null), packaged.icd)
  } catch (e) {
    return {
      reason: `SwiftShader cannot be loaded: ${reasonOf(e)}`,
      hint: 'the packaged driver needs glibc; use the cpu device',
    }
  }
  try {
    return await request(`SwiftShader (software) of @sparticuz/chromium ${packaged.version}`)
  } finally {
    restore()
  }
}

/** Sets the environment of the C library (in a worker, `process.env` is a copy); returns a function that restores it. */
function setDrivers(libc: Library, icd: string): () => void {
  const getenv = libc.func('const char *getenv(const char *)')
  const setenv = libc.func('int setenv(const char *, const char *, int)')
  const unsetenv = libc.func('int unsetenv(const char *)')
  const saved = DRIVER_VARIABLES.map((name) => [name, getenv(name) as string | null] as const)
  for (const name of DRIVER_VARIABLES) setenv(name, icd, 1)
  return () => {
    for (const [name, value] of saved) value === null ? unsetenv(name) : setenv(name, value, 1)
  }
}
