/** Atomic writing of a folder: it is built next to its destination and renamed at the end. */
import { randomUUID } from 'node:crypto'
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { mkdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { onProcessEnd } from '../../cache/replace-file.ts'
import type { Chunks } from '../../io/byte-source.ts'
import { withFileErrors, writeFile } from '../../io/node-files.ts'
import type { Call, PathArgument } from '../arguments/command.ts'
import { checkWritable } from '../arguments/paths.ts'

export interface OutFolder {
  /** The path as typed; `resolved` follows links. */
  readonly path: string
  readonly resolved: string
  /** Files of an earlier call that may exist and are replaced. */
  readonly names: readonly string[]
}

/**
 * Checks the output folder before anything is computed: it contains no input, and only files that this command writes.
 * @throws UsageError, SptError `io/…`
 */
export async function checkOutFolder(
  call: Pick<Call, 'reject'>,
  path: string,
  names: readonly string[],
  inputs: readonly PathArgument[],
): Promise<OutFolder> {
  const resolved = await resolvePath(path)
  // A link in the folder would be replaced, so both the link and its target are checked.
  for (const { typed, path: source } of inputs)
    for (const location of [
      await resolvePath(source),
      join(await resolvePath(dirname(source)), basename(source)),
    ])
      if (location === resolved || location.startsWith(resolved + sep))
        call.reject(`--out ${path} would overwrite ${typed}, which is an input`, {
          expected: 'a separate folder for the output',
        })
  const folder = { path, resolved, names }
  const stats = await stat(resolved).catch(() => null)
  if (stats && !stats.isDirectory())
    failWith('io/not-a-folder', `'${path}' is a file`, { expected: 'a folder' })
  await checkWritable(stats ? temporaryPath(resolved) : path)
  if (stats) checkContents(folder)
  return folder
}

const resolvePath = (path: string): Promise<string> =>
  realpath(path).catch(async () => {
    const folder = await realpath(dirname(resolve(path))).catch(() => dirname(resolve(path)))
    return join(folder, basename(resolve(path)))
  })

/** Suffix of a temporary folder. An `-old` folder holds earlier contents, and is kept. */
const TEMPORARY_SUFFIX = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

const temporaryPath = (resolved: string): string =>
  join(dirname(resolved), `.${basename(resolved)}-${randomUUID()}`)

/** @throws SptError `io/not-empty` */
function checkContents({ path, resolved, names }: OutFolder): void {
  const unexpected = readdirSync(resolved, { withFileTypes: true }).filter(
    (e) => e.isDirectory() || !names.includes(e.name),
  )
  if (unexpected.length > 0)
    failWith(
      'io/not-empty',
      `the folder '${path}' holds '${unexpected[0]!.name}'${unexpected.length > 1 ? ` and ${unexpected.length - 1} more` : ''}`,
      { expected: `a folder that is new, empty, or has nothing but ${names.join(', ')}` },
    )
}

/**
 * Writes the files and removes those of an earlier call. After a failure or a terminating signal the folder is unchanged.
 * @throws SptError `io/…`
 */
export async function writeFolder(
  folder: OutFolder,
  files: ReadonlyMap<string, () => Chunks>,
): Promise<void> {
  const { path, resolved } = folder
  const temporary = temporaryPath(resolved)
  const remove = (): void => rmSync(temporary, { recursive: true, force: true })
  using _ = onProcessEnd(remove)
  try {
    removeStale(folder)
    await withFileErrors(path, 'write', () => mkdir(temporary))
    for (const [name, chunks] of files) await writeFile(join(temporary, name), chunks(), join(path, name))
    await withFileErrors(path, 'write', async () => swapFolders(folder, temporary))
  } catch (error) {
    remove()
    throw error
  }
}

/** Age in ms from which an unfinished folder counts as abandoned by its writer. */
const STALE = 24 * 3_600_000

/**
 * Removes temporary folders of killed calls for this folder: only those at least a day old that contain nothing but this
 * command's files.
 */
function removeStale({ resolved, names }: OutFolder): void {
  const parent = dirname(resolved)
  for (const { name } of readdirSync(parent, { withFileTypes: true }).filter((e) => e.isDirectory())) {
    if (
      !name.startsWith(`.${basename(resolved)}-`) ||
      !TEMPORARY_SUFFIX.test(name.slice(basename(resolved).length + 2))
    )
      continue
    const abandoned = join(parent, name)
    try {
      const files = readdirSync(abandoned, { withFileTypes: true })
      const isOurs = files.every((f) => f.isFile() && names.includes(f.name))
      const isRecent = [abandoned, ...files.map((f) => join(abandoned, f.name))].some(
        (f) => statSync(f).mtimeMs > Date.now() - STALE,
      )
      if (isOurs && !isRecent) rmSync(abandoned, { recursive: true, force: true })
    } catch {
      // Another call may remove it at the same time, or it belongs to another user.
    }
  }
}

/** Replaces the folder synchronously, so that no signal is handled in between. */
function swapFolders(folder: OutFolder, temporary: string): void {
  const { resolved } = folder
  const backup = `${temporary}-old`
  let existed = true
  try {
    renameSync(resolved, backup)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    existed = false
  }
  try {
    // Other files may have been added in the meantime.
    if (existed) checkContents({ ...folder, resolved: backup })
    renameSync(temporary, resolved)
  } catch (error) {
    if (existed) renameSync(backup, resolved)
    throw error
  }
  if (existed) rmSync(backup, { recursive: true, force: true })
}
