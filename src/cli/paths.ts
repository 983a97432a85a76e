/** Checks the input and output paths of a call: no output overwrites an input or another output. */
import { realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Program } from '../ast/linked-program.ts'
import { checkReplaceable, replaceFile } from '../cache/replace-file.ts'
import { splitAddress } from '../io/dispatch.ts'
import { guarded } from '../io/node-files.ts'
import { placeOf } from '../io/package.ts'
import type { Call, PathArgument } from './command.ts'
import { outputAt } from './outputs.ts'
import { misused } from './usage.ts'

/** Checks the paths given on the command line. @throws UsageError */
export async function checkPaths(call: Call): Promise<void> {
  const written = await placesOf(call.files('written'))
  checkOutputs(call)
  for (const [k, { typed, place }] of written.entries()) {
    const before = written.slice(0, k).find((w) => w.place === place)
    if (before)
      misused({
        command: call.command,
        message: `${typed} would write over ${before.typed}`,
        expected: 'a distinct path for each',
      })
  }
  await refuseOverRead(call, written, [
    ...call.args.map((path) => ({ typed: path, path })),
    ...call.files('read'),
  ])
}

/** That standard output has one use at most, which begins anew nowhere. @throws UsageError */
function checkOutputs(call: Call): void {
  const { command, toStandardOutput: all } = call
  const [first, second] = all
  const repeated = call.files('update').find(({ path }) => all.some((a) => a.path === path))
  if (repeated)
    misused({
      command,
      message: `${repeated.typed} is standard output, which cannot be written again and again`,
      expected: 'a distinct path',
    })
  const isJson = call.flag('json') && call.one('json') === undefined
  const other = second?.typed ?? (first && isJson ? '--json' : undefined)
  if (first && other !== undefined)
    misused({
      command,
      message: `${first.typed} and ${other} would both be standard output`,
      expected: 'a distinct path for each',
    })
}

/** That nothing is written over a file that a program was read from, imported ones too. @throws UsageError */
export const checkSources = (
  call: Call,
  { sources }: Pick<Program, 'sources'>,
  written: readonly PathArgument[] = call.files('written'),
): Promise<void> =>
  refuseOverRead(
    call,
    written,
    [...sources.keys()].map((path) => ({ typed: path, path: placeOf(path) })),
    'which the program imports',
  )

async function refuseOverRead(
  call: Call,
  written: readonly PathArgument[],
  read: readonly PathArgument[],
  why = 'which is read',
): Promise<void> {
  if (written.length === 0) return
  const places = await placesOf(read)
  for (const { typed, place } of await placesOf(written)) {
    const source = places.find((r) => r.place === place)
    if (source)
      misused({
        command: call.command,
        message: `${typed} would write over ${source.typed}, ${why}`,
        expected: 'a distinct path for what is written',
      })
  }
}

/** Resolves paths through symbolic links; devices such as /dev/null are left out, because they can be written repeatedly. */
async function placesOf(
  given: readonly PathArgument[],
): Promise<(PathArgument & { readonly place: string })[]> {
  const all = await Promise.all(
    given.map(async (g) => {
      const { path } = splitAddress(g.path)
      return { ...g, place: await realpath(path).catch(() => resolve(path)) }
    }),
  )
  return all.filter(({ place }) => !place.startsWith('/dev/'))
}

/** That a file can be replaced, before the work whose result it is to hold. @throws SptError `io/…` */
export const checkWritable = (path: string): Promise<void> =>
  guarded(path, 'write', async () => {
    if (outputAt(path) === null) await checkReplaceable(path)
  })

/** That files could be written into a folder. @throws SptError `io/…` */
export const checkWritableFolder = (folder: string, file: string): Promise<void> =>
  checkWritable(join(folder, file))

/**
 * Writes a new file: the first free name of `pathOf`, counted from `first`; returns its number. Existing files stay,
 * including those that other processes create meanwhile.
 * @throws SptError `io/…`
 */
export async function writeNew(pathOf: (n: number) => string, text: string, first = 1): Promise<number> {
  for (let n = first; ; n++) {
    const path = pathOf(n)
    const isNew = await guarded(path, 'write', async () => {
      try {
        await replaceFile(path, [new TextEncoder().encode(text)], { isNew: true })
        return true
      } catch (e) {
        if ((e as NodeJS.ErrnoException).code !== 'EEXIST') throw e
        return false
      }
    })
    if (isNew) return n
  }
}
