/** Checks the input and output paths of a call: no output overwrites an input or another output. */
import { realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Program } from '../../ast/imports/linked-program.ts'
import { checkReplaceable, replaceFile } from '../../cache/replace-file.ts'
import { splitAddress } from '../../io/dispatch.ts'
import { withFileErrors } from '../../io/node-files.ts'
import { locate } from '../../io/package/package.ts'
import { standardStream } from '../output/outputs.ts'
import type { Call, PathArgument } from './command.ts'

/** Checks the paths given on the command line. @throws UsageError */
export async function checkPaths(call: Call): Promise<void> {
  const written = await resolvePaths(call.files('written'))
  checkStandardOutput(call)
  for (const [k, { typed, resolved }] of written.entries()) {
    const earlier = written.slice(0, k).find((w) => w.resolved === resolved)
    if (earlier)
      call.reject(`${typed} would overwrite ${earlier.typed}`, { expected: 'a distinct path for each' })
  }
  await rejectOverwrites(call, written, [
    ...call.args.map((path) => ({ typed: path, path })),
    ...call.files('read'),
  ])
}

/** Checks that at most one output is standard output, and that it is not rewritten. @throws UsageError */
function checkStandardOutput(call: Call): void {
  const { standardOutputs: outputs } = call
  const [first, second] = outputs
  const repeated = call.files('update').find(({ path }) => outputs.some((a) => a.path === path))
  if (repeated)
    call.reject(`${repeated.typed} is standard output, which cannot be written again and again`, {
      expected: 'a distinct path',
    })
  const isJson = call.flag('json') && call.one('json') === undefined
  const conflict = second?.typed ?? (first && isJson ? '--json' : undefined)
  if (first && conflict !== undefined)
    call.reject(`${first.typed} and ${conflict} would both be standard output`, {
      expected: 'a distinct path for each',
    })
}

/** Checks that no output overwrites a source of the program, including imported files. @throws UsageError */
export const checkSources = (
  call: Call,
  { sources }: Pick<Program, 'sources'>,
  written: readonly PathArgument[] = call.files('written'),
): Promise<void> =>
  rejectOverwrites(
    call,
    written,
    [...sources.keys()].map((path) => ({ typed: path, path: locate(path) })),
    'which the program imports',
  )

async function rejectOverwrites(
  call: Call,
  written: readonly PathArgument[],
  read: readonly PathArgument[],
  reason = 'which is read',
): Promise<void> {
  if (written.length === 0) return
  const inputs = await resolvePaths(read)
  for (const { typed, resolved } of await resolvePaths(written)) {
    const source = inputs.find((r) => r.resolved === resolved)
    if (source)
      call.reject(`${typed} would overwrite ${source.typed}, ${reason}`, {
        expected: 'a distinct path for the output',
      })
  }
}

/** Resolves paths through symbolic links; devices such as /dev/null are left out, because they can be written repeatedly. */
async function resolvePaths(
  paths: readonly PathArgument[],
): Promise<(PathArgument & { readonly resolved: string })[]> {
  const entries = await Promise.all(
    paths.map(async (g) => {
      const { path } = splitAddress(g.path)
      return { ...g, resolved: await realpath(path).catch(() => resolve(path)) }
    }),
  )
  return entries.filter(({ resolved }) => !resolved.startsWith('/dev/'))
}

/** Checks that a file can be replaced, before its contents are computed. @throws SptError `io/…` */
export const checkWritable = (path: string): Promise<void> =>
  withFileErrors(path, 'write', async () => {
    if (standardStream(path) === null) await checkReplaceable(path)
  })

/** Checks that files can be written into a folder. @throws SptError `io/…` */
export const checkWritableFolder = (folder: string, file: string): Promise<void> =>
  checkWritable(join(folder, file))

/**
 * Writes a new file: the first free name of `pathOf`, counted from `first`; returns its number. Existing files stay,
 * including those that other processes create meanwhile.
 * @throws SptError `io/…`
 */
export async function writeNumberedFile(
  pathOf: (n: number) => string,
  text: string,
  first = 1,
): Promise<number> {
  for (let n = first; ; n++) {
    const path = pathOf(n)
    const isNew = await withFileErrors(path, 'write', async () => {
      try {
        await replaceFile(path, [new TextEncoder().encode(text)], { exclusive: true })
        return true
      } catch (e) {
        if ((e as NodeJS.ErrnoException).code !== 'EEXIST') throw e
        return false
      }
    })
    if (isNew) return n
  }
}
