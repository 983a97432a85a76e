/** What `spt calibrate` measured of devices: files in the user's cache folder, one for each chip, driver and version. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { cacheFolder, cacheKey, makeFolder } from '../cache/disk-cache.ts'
import { guarded, writeFile } from './node-files.ts'
import { version } from './package.ts'
import { processorKey } from './processor-key.ts'

/** A device as far as what was measured of it holds for it. */
export interface Chip {
  readonly kind: string
  readonly name: string
  readonly driver: string
}

/** Of a device; all of a host's processors are one, which differ between hosts in more than their name. */
export function chipOf(device: {
  readonly kind: string
  readonly name?: string | undefined
  readonly driver?: string | undefined
}): Chip {
  const { kind, name = '', driver } = device
  if (kind !== 'cpu') return { kind, name, driver: driver ?? '' }
  return {
    kind,
    name: `${cpus()[0]?.model.trim() || name} (${processorKey()})`,
    driver: `Node ${process.versions.node}, V8 ${process.versions.v8}`,
  }
}

type Env = Readonly<Record<string, string | undefined>>

/** Undefined where caching is off. */
const folderOf = (env: Env): string | undefined => {
  const folder = cacheFolder(undefined, env)
  return folder === undefined ? undefined : join(folder, 'calibrations')
}

const NAME_CHARS = 24

/** Where that of a chip lies; undefined where caching is off. */
export function calibrationPath({ kind, name, driver }: Chip, env: Env = process.env): string | undefined {
  const folder = folderOf(env)
  const key = cacheKey([kind, name, driver, version()]).slice(0, NAME_CHARS)
  return folder === undefined ? undefined : join(folder, `${kind}-${key}.json`)
}

/** @throws SptError `io/…` */
export const writeCalibration = (path: string, calibration: object): Promise<void> =>
  writeFile(path, `${JSON.stringify(calibration)}\n`)

/** The folder that it lies in. @throws SptError `io/…` */
export const makeCalibrationFolder = async (path: string): Promise<void> => {
  await guarded(path, 'write', () => makeFolder(dirname(path)))
}

/** What the file of a chip holds, as far as it is JSON; `null` where there is none, `undefined` where it cannot be read. */
export function storedCalibration(chip: Chip, env: Env = process.env): unknown {
  const path = calibrationPath(chip, env)
  return path === undefined ? null : storedAt(path)
}

function storedAt(path: string): unknown {
  try {
    // What JSON calls null is no calibration, and a file.
    return JSON.parse(readFileSync(path, 'utf8')) ?? undefined
  } catch (e) {
    return (e as NodeJS.ErrnoException).code === 'ENOENT' ? null : undefined
  }
}

/** What the files of all devices of a kind hold, the one that was written last first; `undefined` for what is no JSON. */
export function storedCalibrations(kind: string, env: Env = process.env): readonly unknown[] {
  const folder = folderOf(env)
  if (folder === undefined) return []
  const names = (): string[] => {
    try {
      const written = (n: string): number => statSync(join(folder, n)).mtimeMs
      const own = readdirSync(folder).filter((n) => n.startsWith(`${kind}-`) && n.endsWith('.json'))
      return own.sort((a, b) => written(b) - written(a))
    } catch {
      return []
    }
  }
  return names().map((name) => storedAt(join(folder, name)))
}
