/** Texts of programs from files, in Node: regular files, no longer than a program may be, inside of a root where there is one. */
import { constants } from 'node:fs'
import { open, realpath, stat } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { fail } from '../ast/diagnostic.ts'
import { MAX_SOURCE } from '../ast/lexical-scan.ts'
import { type ReadText, refuseOutside } from '../ast/resolve-imports.ts'
import { inPackage, isWithin, PACKAGE, resolvePath } from '../ast/resolve-path.ts'
import { folderAt, guarded, refuseAsFolder, regular } from './node-files.ts'
import { packageText, placeOf } from './package.ts'

/** UTF-8 takes at most 3 bytes for a UTF-16 code unit, which is what a program's length is counted in. */
const MAX_BYTES = 3 * MAX_SOURCE

/**
 * The text of a program. Throws `io/not-found`, `io/is-folder`, `io/not-a-file`, `io/permission`, `io/read`,
 * `io/not-text` and, before it is read, `parse/too-large`.
 */
export function readProgramText(path: string): Promise<string> {
  return textAt(path, placeOf(path))
}

/** The text of a program that came with the package; `null` of any other path. */
export const shippedText = (path: string): string | null =>
  isWithin(`${PACKAGE}kernels`, path) ? packageText(resolvePath('', path).slice(PACKAGE.length)) : null

async function textAt(path: string, place: string): Promise<string> {
  const text = await guarded(path, 'read', async () => {
    const size = await regular(path, place)
    if (size > MAX_BYTES)
      fail({
        code: 'parse/too-large',
        message: `'${path}' has ${size} bytes; a program may have ${MAX_SOURCE} characters`,
        hint: 'is this a data file? Those are bound with --bind NAME=PATH',
      })
    // What has become a pipe since does not make anyone wait.
    const handle = await open(place, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      const bytes = Buffer.alloc(size)
      let at = 0
      while (at < size) {
        const { bytesRead } = await handle.read(bytes, at, size - at, at)
        if (bytesRead === 0) break
        at += bytesRead
      }
      return bytes.toString('utf8', 0, at)
    } finally {
      await handle.close()
    }
  })
  if (text.includes('\0'))
    fail({
      code: 'io/not-text',
      message: `'${path}' is not a text`,
      expected: 'a program (.spt)',
      hint: 'data are bound with spt run --bind NAME=PATH',
    })
  return text
}

/** Refuses the path of a folder in the place of a program. @throws SptError `io/is-folder` */
export async function refuseFolder(path: string): Promise<void> {
  const found = await stat(placeOf(path)).catch(() => null)
  if (found?.isDirectory()) refuseAsFolder(path)
}

/**
 * Reads files in a folder, and of the package, and no others: where links lead and what `..` makes of a path counts. Throws
 * `import/outside-root`, whether there is such a file or not.
 */
export async function rootedIn(root: string): Promise<ReadText> {
  const folder = await folderAt(root)
  const holds = (place: string, of = folder): boolean => place.startsWith(of.endsWith(sep) ? of : of + sep)
  return async (path) => {
    if (inPackage(path)) return readProgramText(path)
    const named = resolve(placeOf(path))
    const place = await realpath(named).catch(() => null)
    // Where nothing is, the name alone decides: what lies outside is not told.
    const isInside = place === null ? holds(named) || holds(named, resolve(root)) : holds(place)
    if (!isInside) refuseOutside(path, root)
    return textAt(path, place ?? named)
  }
}
