/**
 * Node files as sources and sinks. Together with `index.ts`, the only modules of this directory that import Node
 * modules.
 */
import { existsSync } from 'node:fs'
import { type FileHandle, open, readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, extname, isAbsolute, join } from 'node:path'
import { type Details, type Diagnostic, fail, failWith, SptError } from '../ast/diagnostics/diagnostic.ts'
import { PACKAGE } from '../ast/imports/resolve-path.ts'
import { isTemporary, replaceFile } from '../cache/replace-file.ts'
import { type ByteSource, CHUNK_BYTES, type Chunks, pieces, WHOLE } from './byte-source.ts'
import { fromUrl, locate } from './package/package.ts'

const error = (code: string, message: string, details: Details): Diagnostic => ({ code, message, ...details })

/** The diagnostic for a failed file system call. */
export function fileDiagnostic(cause: unknown, path: string, action: 'read' | 'write'): Diagnostic {
  const { code, message, path: at = path } = cause as NodeJS.ErrnoException
  const folder = dirname(path)
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      if (action === 'read')
        return error('io/not-found', `there is no file '${path}'`, {
          hint: 'part of the path is a file, or missing',
        })
      if (code === 'ENOTDIR')
        return error('io/not-a-folder', `a folder of the path '${path}' is a file`, { expected: 'a folder' })
      return existsSync(folder)
        ? error('io/permission', `no file can be created in '${folder}'`, { expected: 'a folder of files' })
        : error('io/not-found', `there is no folder '${folder}' to write '${basename(path)}' into`, {
            hint: 'Create it first.',
          })
    case 'EEXIST':
      return error('io/not-a-folder', `'${path}' is a file`, { expected: 'a folder' })
    case 'EISDIR':
      return folderDiagnostic(path)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return isTemporary(at)
        ? error('io/permission', `no permission to write a file into '${folder}'`, {
            expected: 'a folder that you may write to',
            ...(existsSync(path) && {
              hint: 'files are replaced, not changed: write into another folder, and copy',
            }),
          })
        : error('io/permission', `no permission to ${action} '${path}'`, {
            expected: action === 'read' ? 'a file that you may read' : 'a place that you may write to',
          })
    case 'ENOSPC':
    case 'EDQUOT':
      return error('io/no-space', `no space left to write '${path}'`, {
        hint: 'free some, or write to another disk; a file of that name is unchanged',
      })
    case 'EBUSY':
      return error(`io/${action}`, `'${path}' cannot be replaced: it is mounted, or in use`, {
        hint: 'write into another folder, and copy the file',
      })
    default:
      return error(`io/${action}`, `cannot ${action} '${path}': ${message ?? String(cause)}`, {
        hint: 'the operating system rejects it: try another path or disk',
      })
  }
}

/** Runs `work`, converting file system errors into diagnostics. */
export async function withFileErrors<T>(
  path: string,
  action: 'read' | 'write',
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { syscall, code } = (error ?? {}) as NodeJS.ErrnoException
    // Node rejects some paths (with a NUL character) before calling the system.
    if (typeof syscall !== 'string' && code !== 'ERR_INVALID_ARG_VALUE') throw error
    if (action === 'read' && code === 'ENOENT') return rejectMissing(path)
    throw new SptError(fileDiagnostic(error, path, action))
  }
}

/** Reports a missing file, with neighbouring files and a package file of the same path as suggestions. */
async function rejectMissing(path: string): Promise<never> {
  const isBare = !isAbsolute(path) && !path.startsWith('.')
  const inPackage = isBare ? ['', 'data/', 'kernels/'].map((folder) => PACKAGE + folder + path) : []
  const stats = await Promise.all(inPackage.map((p) => stat(locate(p)).catch(() => null)))
  const packaged = inPackage.find((_, k) => stats[k]?.isFile())
  const isPackaged = packaged !== undefined
  const folder = dirname(fromUrl(path))
  const entries = await readdir(dirname(locate(path))).catch((e: NodeJS.ErrnoException) => e.code)
  const neighbours = Array.isArray(entries) ? entries : []
  // Files with the same ending, or with the same name if the ending was omitted.
  const fileName = basename(path)
  const candidates = neighbours.filter(
    (n) => n !== fileName && (extname(n) === extname(path) || n.startsWith(`${fileName}.`)),
  )
  const reason = isPackaged
    ? `'${packaged}' is a file of the package`
    : entries === 'ENOENT'
      ? `there is no folder '${folder}' either`
      : neighbours.includes(fileName)
        ? 'it is a link to what is not there'
        : folder === '.'
          ? 'it was looked for in the current folder'
          : `the folder '${folder}' is there, and has no '${fileName}'`
  return failWith('io/not-found', `there is no file '${path}'`, {
    lookup: { name: fileName, candidates },
    ...((isPackaged || candidates.length === 0) && { hint: reason }),
  })
}

const folderDiagnostic = (path: string): Diagnostic =>
  error('io/is-folder', `'${path}' is a folder`, { expected: 'a file' })

/** Rejects a folder given as a file. @throws SptError `io/is-folder` */
export const rejectFolder = (path: string): never => fail(folderDiagnostic(path))

/**
 * The size of a regular file in bytes. `location`: its location in the file system. @throws SptError `io/is-folder`,
 * `io/not-a-file`
 */
export async function regularFileSize(path: string, location = locate(path)): Promise<number> {
  const found = await stat(location)
  if (found.isDirectory()) rejectFolder(path)
  // Pipes and devices have no size, may be endless, and have no random access.
  if (!found.isFile())
    failWith('io/not-a-file', `'${path}' is not a regular file`, { hint: 'save the output in a file first' })
  return found.size
}

/** Reports a missing folder, with neighbouring folders as suggestions. */
async function rejectMissingFolder(path: string): Promise<never> {
  const whole = basename(path)
  const beside = await readdir(dirname(locate(path)), { withFileTypes: true }).catch(() => [])
  const candidates = beside.filter((x) => x.isDirectory() && x.name !== whole).map((x) => x.name)
  return failWith('io/not-found', `there is no folder '${path}'`, {
    lookup: { name: whole, candidates },
    expected: 'a folder',
  })
}

/** The location of the folder `path`. @throws SptError `io/not-found`, `io/not-a-folder`, `io/permission` */
export function folderAt(path: string): Promise<string> {
  return withFileErrors(path, 'read', async () => {
    const location = await realpath(locate(path)).catch((e: NodeJS.ErrnoException) => {
      if (e.code !== 'ENOENT') throw e
      return rejectMissingFolder(path)
    })
    if (!(await stat(location)).isDirectory())
      failWith('io/not-a-folder', `'${path}' is a file`, { expected: 'a folder' })
    return location
  })
}

function handleSource(handle: FileHandle, path: string, size: number): ByteSource {
  const read = async (start: number, end: number): Promise<Uint8Array> => {
    const bytes = new Uint8Array(Math.max(0, Math.min(end, size) - start))
    let at = 0
    while (at < bytes.length) {
      const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at)
      if (bytesRead === 0) break
      at += bytesRead
    }
    return bytes.subarray(0, at)
  }
  return {
    name: path,
    size,
    read: (start, end) => withFileErrors(path, 'read', () => read(start, end)),
    beside: (name) => fileSource(join(dirname(locate(path)), name)),
    async *stream() {
      const buffer = new Uint8Array(CHUNK_BYTES)
      for (let at = 0; at < size; ) {
        const { bytesRead } = await withFileErrors(path, 'read', () =>
          handle.read(buffer, 0, CHUNK_BYTES, at),
        )
        if (bytesRead === 0) return
        at += bytesRead
        yield buffer.subarray(0, bytesRead)
      }
    },
  }
}

/**
 * Opens a file for `use` and closes it. @throws SptError `io/not-found`, `io/is-folder`, `io/not-a-file`, `io/empty`,
 * `io/permission`, `io/read`
 */
export function withFile<T>(path: string, use: (source: ByteSource) => Promise<T>): Promise<T> {
  return withFileErrors(path, 'read', async () => {
    const size = await regularFileSize(path)
    if (size === 0) failWith('io/empty', `'${path}' is empty`, { hint: WHOLE })
    await using handle = await open(locate(path), 'r')
    return await use(handleSource(handle, path, size))
  })
}

/**
 * A file that is opened for each read, so it need not be closed. @throws as `withFile`; reads throw `io/changed` if the
 * file's size has changed
 */
export async function fileSource(path: string): Promise<ByteSource> {
  const size = await withFile(path, async (source) => source.size)
  const read = (start: number, end: number): Promise<Uint8Array> =>
    withFile(path, async (source) => {
      if (source.size !== size)
        failWith('io/changed', `'${path}' had ${size} bytes when opened, and now has ${source.size}`, {
          hint: 'read the file again when no program is writing it',
        })
      return source.read(start, end)
    })
  return {
    name: path,
    size,
    read,
    beside: (name) => fileSource(join(dirname(locate(path)), name)),
    stream: () => pieces(read, 0, size),
  }
}

/**
 * Writes chunks or a text; a failed write leaves the old file. `name`: the file in errors. @throws SptError
 * `io/not-found`, `io/is-folder`, `io/permission`, `io/no-space`, `io/write`
 */
export function writeFile(path: string, content: Chunks | string, name = path): Promise<void> {
  const chunks = typeof content === 'string' ? [new TextEncoder().encode(content)] : content
  return withFileErrors(name, 'write', () => replaceFile(fromUrl(path), chunks))
}
