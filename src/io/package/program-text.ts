/**
 * Program sources from files, in Node: regular files within the size limit of programs, optionally restricted to a root
 * folder.
 */
import { constants } from 'node:fs'
import { open, realpath, stat } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import {
  inPackage,
  isWithin,
  PACKAGE,
  type ReadText,
  rejectOutside,
  resolvePath,
} from '../../ast/imports/resolve-path.ts'
import { MAX_SOURCE } from '../../ast/parse/lexical-scan.ts'
import { folderAt, regularFileSize, rejectFolder, withFileErrors } from '../node-files.ts'
import { locate, packageText } from './package.ts'

/**
 * Largest file in bytes: UTF-8 needs at most 3 bytes per UTF-16 code unit, in which the length of programs is measured.
 */
const MAX_BYTES = 3 * MAX_SOURCE

/**
 * The source of a program. @throws SptError `io/not-found`, `io/is-folder`, `io/not-a-file`, `io/permission`,
 * `io/read`, `io/not-text` and, before it is read, `parse/too-large`
 */
export function readProgramText(path: string): Promise<string> {
  return readTextAt(path, locate(path))
}

/** The source of a program or a dispatch table shipped with the package; `null` for other paths. */
export const shippedText = (path: string): string | null =>
  ['kernels', 'data/choices'].some((folder) => isWithin(`${PACKAGE}${folder}`, path))
    ? packageText(resolvePath('', path).slice(PACKAGE.length))
    : null

async function readTextAt(path: string, location: string): Promise<string> {
  const text = await withFileErrors(path, 'read', async () => {
    const size = await regularFileSize(path, location)
    if (size > MAX_BYTES)
      failWith(
        'parse/too-large',
        `'${path}' has ${size} bytes; a program may have ${MAX_SOURCE} characters`,
        { hint: 'is this a data file? Bind data with --bind NAME=PATH' },
      )
    // Non-blocking, in case the path has become a pipe since.
    await using handle = await open(location, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const bytes = Buffer.alloc(size)
    let offset = 0
    while (offset < size) {
      const { bytesRead } = await handle.read(bytes, offset, size - offset, offset)
      if (bytesRead === 0) break
      offset += bytesRead
    }
    return bytes.toString('utf8', 0, offset)
  })
  if (text.includes('\0'))
    failWith('io/not-text', `'${path}' is not a text`, {
      expected: 'a program (.spt)',
      hint: 'data are bound with spt run --bind NAME=PATH',
    })
  return text
}

/** Rejects a folder given as a program. @throws SptError `io/is-folder` */
export async function refuseFolder(path: string): Promise<void> {
  const stats = await stat(locate(path)).catch(() => null)
  if (stats?.isDirectory()) rejectFolder(path)
}

/**
 * A reader restricted to a folder and to the package, after resolving links and `..`. @throws SptError
 * `import/outside-root`, whether the file exists or not
 */
export async function rootedIn(root: string): Promise<ReadText> {
  const folder = await folderAt(root)
  const contains = (location: string, parent = folder): boolean =>
    location.startsWith(parent.endsWith(sep) ? parent : parent + sep)
  return async (path) => {
    if (inPackage(path)) return readProgramText(path)
    const named = resolve(locate(path))
    const location = await realpath(named).catch(() => null)
    // For missing files only the name decides, so that the existence of files outside is not revealed.
    const isInside =
      location === null ? contains(named) || contains(named, resolve(root)) : contains(location)
    if (!isInside) rejectOutside(path, root)
    return readTextAt(path, location ?? named)
  }
}
