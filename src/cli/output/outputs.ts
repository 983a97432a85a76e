/**
 * Output files and standard streams. A path that is a standard stream (`/dev/stdout`, or the file it is redirected to) is
 * written through that stream, because two descriptors of one file would overwrite each other.
 */
import { type BigIntStats, fstatSync, statSync } from 'node:fs'
import { writeFile } from '../../io/node-files.ts'
import type { Io } from './io.ts'

export type StandardStream = 'out' | 'err'

const STREAM_PATHS: readonly (readonly [StandardStream, RegExp])[] = [
  ['out', /^\/(?:dev\/stdout|dev\/fd\/1|proc\/self\/fd\/1)$/],
  ['err', /^\/(?:dev\/stderr|dev\/fd\/2|proc\/self\/fd\/2)$/],
]
const DESCRIPTORS: readonly (readonly [StandardStream, number])[] = [
  ['out', 1],
  ['err', 2],
]

/** The standard stream behind a path; `null` for ordinary files and devices. */
export function standardStream(path: string): StandardStream | null {
  for (const [stream, name] of STREAM_PATHS) if (name.test(path)) return stream
  const file = regularFile(path)
  if (!file) return null
  return DESCRIPTORS.find(([, descriptor]) => isOpenAs(file, descriptor))?.[0] ?? null
}

/** The regular file at a path, or null. Inaccessible paths are reported when they are written. */
function regularFile(path: string): BigIntStats | null {
  try {
    const file = statSync(path, { bigint: true })
    return file.isFile() ? file : null
  } catch {
    return null
  }
}

function isOpenAs(file: BigIntStats, descriptor: number): boolean {
  try {
    const stats = fstatSync(descriptor, { bigint: true })
    return stats.isFile() && stats.dev === file.dev && stats.ino === file.ino
  } catch {
    // The descriptor is closed.
    return false
  }
}

/** Sends reports to standard error if the result itself goes to standard output. */
export const reportOnStderr = (io: Io): Io => ({
  ...io,
  out: (text) => io.err(text),
  color: { out: io.color.err, err: io.color.err },
})

/** Writes a text to a file or a standard stream. @throws SptError `io/…` */
export async function writeText(io: Io, path: string, text: string): Promise<void> {
  const stream = standardStream(path)
  if (stream === null) await writeFile(path, text)
  else io[stream](text)
}
