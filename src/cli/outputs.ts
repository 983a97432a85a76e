/**
 * Destinations of a command's output. A path that is an output of the process (`/dev/stdout`, or the file it is redirected
 * to) is written through that output: two descriptors of one file would overwrite each other.
 */
import { type BigIntStats, fstatSync, statSync } from 'node:fs'
import { writeFile } from '../io/node-files.ts'
import type { Io } from './io.ts'

export type Output = 'out' | 'err'

const NAMES: readonly (readonly [Output, RegExp])[] = [
  ['out', /^\/(?:dev\/stdout|dev\/fd\/1|proc\/self\/fd\/1)$/],
  ['err', /^\/(?:dev\/stderr|dev\/fd\/2|proc\/self\/fd\/2)$/],
]
const DESCRIPTORS: readonly (readonly [Output, number])[] = [
  ['out', 1],
  ['err', 2],
]

/** The output of the process behind a path; `null` for ordinary files and devices. */
export function outputAt(path: string): Output | null {
  for (const [output, name] of NAMES) if (name.test(path)) return output
  const file = fileAt(path)
  if (!file) return null
  return DESCRIPTORS.find(([, descriptor]) => isAt(file, descriptor))?.[0] ?? null
}

/** The regular file at a path, or null. Inaccessible paths are reported when they are written. */
function fileAt(path: string): BigIntStats | null {
  try {
    const file = statSync(path, { bigint: true })
    return file.isFile() ? file : null
  } catch {
    return null
  }
}

function isAt(file: BigIntStats, descriptor: number): boolean {
  try {
    const open = fstatSync(descriptor, { bigint: true })
    return open.isFile() && open.dev === file.dev && open.ino === file.ino
  } catch {
    // It was closed.
    return false
  }
}

/** Sends reports to standard error if the result itself goes to standard output. */
export const reportsAside = (io: Io): Io => ({
  ...io,
  out: (text) => io.err(text),
  color: { out: io.color.err, err: io.color.err },
})

/** Writes all of a text to a file or an output. @throws SptError `io/…` */
export async function writeText(io: Io, path: string, text: string): Promise<void> {
  const output = outputAt(path)
  if (output === null) await writeFile(path, text)
  else io[output](text)
}
