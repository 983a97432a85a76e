/** What a command reads and writes by the paths of its call: nothing is written over what it reads, or twice to one place. */
import { access, constants, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { guarded } from '../io/node-files.ts'
import { longName } from './args.ts'
import type { Call, CommandSpec } from './command.ts'
import { misused } from './usage.ts'

interface PathArgument {
  /** As typed: `--out C=c.npy`. */
  readonly typed: string
  readonly path: string
}

/** @throws UsageError */
export async function checkPaths(command: CommandSpec, call: Call): Promise<void> {
  const written = await placesOf(optionsOf(command, call, 'write'))
  if (written.length === 0) return
  const read = await placesOf([
    ...call.args.map((path) => ({ typed: path, path })),
    ...optionsOf(command, call, 'read'),
  ])
  for (const [k, { typed, place }] of written.entries()) {
    const source = read.find((r) => r.place === place)
    const before = written.slice(0, k).find((w) => w.place === place)
    if (source)
      misused({
        command: call.command,
        message: `${typed} would write over ${source.typed}, which is read`,
        expected: 'a path of its own for what is written',
      })
    if (before)
      misused({
        command: call.command,
        message: `${typed} would write over ${before.typed}`,
        expected: 'a path of its own for each',
      })
  }
}

function optionsOf(command: CommandSpec, call: Call, file: 'read' | 'write'): PathArgument[] {
  return command.options
    .filter((o) => o.file === file)
    .flatMap((o) =>
      call.many(longName(o)).map((text) => ({
        typed: `--${longName(o)} ${text}`,
        path: o.flags.includes('NAME=') ? text.slice(text.indexOf('=') + 1) : text,
      })),
    )
}

/** Where paths lead; devices, such as /dev/null, take anything. */
async function placesOf(
  given: readonly PathArgument[],
): Promise<(PathArgument & { readonly place: string })[]> {
  const all = await Promise.all(
    given.map(async (g) => {
      const path = g.path.replace(/(?<=\.npz)#.*$/i, '')
      return { ...g, place: await realpath(path).catch(() => resolve(path)) }
    }),
  )
  return all.filter(({ place }) => !place.startsWith('/dev/'))
}

/** That a file could be written, before the work whose result it is to hold. @throws SptError `io/…` */
export const checkWritable = (path: string): Promise<void> =>
  guarded(path, 'write', async () => {
    const there = await stat(path).catch(() => null)
    if (there?.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR', syscall: 'open' })
    if (!there && !(await stat(dirname(path))).isDirectory())
      throw Object.assign(new Error('no folder'), { code: 'ENOTDIR', syscall: 'open' })
    await access(there ? path : dirname(path), constants.W_OK)
  })

/** That files could be written into a folder. @throws SptError `io/…` */
export const checkWritableFolder = (folder: string, file: string): Promise<void> =>
  checkWritable(join(folder, file))
