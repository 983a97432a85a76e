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
import { makeFolderSync } from '../../cache/disk-cache.ts'

const PACKAGE = '@sparticuz/chromium'
/** 147.0.1 and later require Node 22.17; both versions contain the same files. */
const KNOWN_VERSION = Number(process.versions.node.split('.')[0]) < 23 ? '147.0.0' : '153.0.0'
const INSTALL = `npm install ${PACKAGE}@${KNOWN_VERSION}`
const ARCHIVE = 'swiftshader.tar.br'
const LOADER = 'libvulkan.so.1'
const ICD = 'vk_swiftshader_icd.json'
const LACKS = 'holds no'
const FILES = ['libvk_swiftshader.so', LOADER, ICD]

/** Paths of the unpacked driver. */
export interface SwiftShader {
  readonly dir: string
  /** A Vulkan loader, for machines that have none. */
  readonly loader: string
  /** The description of the driver, for `VK_DRIVER_FILES`. */
  readonly icd: string
  readonly version: string
}

/** Reason for the absence of a driver, and the remedy. */
export interface Missing {
  readonly reason: string
  readonly hint: string
}

export const isMissing = (x: SwiftShader | Missing): x is Missing => 'reason' in x

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
