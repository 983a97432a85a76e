/** Atomic writing of a folder: it is built next to its destination and renamed at the end. */
import { randomUUID } from 'node:crypto'
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { mkdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { fail } from '../../ast/diagnostic.ts'
import { onProcessEnd } from '../../cache/replace-file.ts'
import type { Chunks } from '../../io/byte-source.ts'
import { guarded, writeFile } from '../../io/node-files.ts'
import type { PathArgument } from '../command.ts'
import { checkWritable } from '../paths.ts'
import { misused } from '../usage.ts'

export interface OutFolder {
  /** The path as typed; `place` is the resolved path. */
  readonly path: string
  readonly place: string
  /** Files that it may have of an earlier call, which it then has no more. */
  readonly names: readonly string[]
}

/**
 * The folder before anything is computed: nothing that is read lies in it, and nothing that this command does not write.
 * @throws UsageError, SptError `io/…`
 */
export async function outFolder(
  command: string,
  path: string,
  names: readonly string[],
  read: readonly PathArgument[],
): Promise<OutFolder> {
  const place = await placeOf(path)
  // A link in the folder is replaced as files are, whatever it leads to.
  for (const { typed, path: source } of read)
    for (const at of [await placeOf(source), join(await placeOf(dirname(source)), basename(source))])
      if (at === place || at.startsWith(place + sep))
        misused({
          command,
          message: `--out ${path} would write over ${typed}, which is read`,
          expected: 'a separate folder for what is written',
        })
  const folder = { path, place, names }
  const found = await stat(place).catch(() => null)
  if (found && !found.isDirectory())
    fail({ code: 'io/not-a-folder', message: `'${path}' is a file`, expected: 'a folder' })
  await checkWritable(found ? beside(place) : path)
  if (found) refuseOthers(folder)
  return folder
}

const placeOf = (path: string): Promise<string> =>
  realpath(path).catch(async () => {
    const folder = await realpath(dirname(resolve(path))).catch(() => dirname(resolve(path)))
    return join(folder, basename(resolve(path)))
  })

/** Suffix of a temporary folder. An `-old` folder holds earlier contents, and is kept. */
const OWN = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

/** A unique name next to the folder. */
const beside = (place: string): string => join(dirname(place), `.${basename(place)}-${randomUUID()}`)

/** @throws SptError `io/not-empty` */
function refuseOthers({ path, place, names }: OutFolder): void {
  const others = readdirSync(place, { withFileTypes: true }).filter(
    (e) => e.isDirectory() || !names.includes(e.name),
  )
  if (others.length > 0)
    fail({
      code: 'io/not-empty',
      message: `the folder '${path}' holds '${others[0]!.name}'${others.length > 1 ? ` and ${others.length - 1} more` : ''}`,
      expected: `a folder that is new, empty, or has nothing but ${names.join(', ')}`,
    })
}

/**
 * Writes the files and removes those of an earlier call. After a failure or a terminating signal the folder is unchanged.
 * @throws SptError `io/…`
 */
export async function writeFolder(
  folder: OutFolder,
  files: ReadonlyMap<string, () => Chunks>,
): Promise<void> {
  const { path, place } = folder
  const made = beside(place)
  const remove = (): void => rmSync(made, { recursive: true, force: true })
  const release = onProcessEnd(remove)
  try {
    removeStale(folder)
    await guarded(path, 'write', () => mkdir(made))
    for (const [name, chunks] of files) await writeFile(join(made, name), chunks(), join(path, name))
    await guarded(path, 'write', async () => exchange(folder, made))
  } catch (error) {
    remove()
    throw error
  } finally {
    release()
  }
}

/** Age in ms from which an unfinished folder counts as abandoned by its writer. */
const STALE = 24 * 3_600_000

/**
 * Removes temporary folders of killed calls for this folder: only those at least a day old that contain nothing but this
 * command's files.
 */
function removeStale({ place, names }: OutFolder): void {
  const parent = dirname(place)
  for (const { name } of readdirSync(parent, { withFileTypes: true }).filter((e) => e.isDirectory())) {
    if (!name.startsWith(`.${basename(place)}-`) || !OWN.test(name.slice(basename(place).length + 2)))
      continue
    const left = join(parent, name)
    try {
      const files = readdirSync(left, { withFileTypes: true })
      const isOurs = files.every((f) => f.isFile() && names.includes(f.name))
      const young = [left, ...files.map((f) => join(left, f.name))].some(
        (f) => statSync(f).mtimeMs > Date.now() - STALE,
      )
      if (isOurs && !young) rmSync(left, { recursive: true, force: true })
    } catch {
      // Another call may remove it, too, or it may be another user's: it stays where it is.
    }
  }
}

/** At once: no signal is handled meanwhile. */
function exchange(folder: OutFolder, made: string): void {
  const { place } = folder
  const old = `${made}-old`
  let had = true
  try {
    renameSync(place, old)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    had = false
  }
  try {
    // It may have got others meanwhile.
    if (had) refuseOthers({ ...folder, place: old })
    renameSync(made, place)
  } catch (error) {
    if (had) renameSync(old, place)
    throw error
  }
  if (had) rmSync(old, { recursive: true, force: true })
}
