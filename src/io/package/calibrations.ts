/** Measurements of `spt calibrate`: files in the user's cache folder, one for each chip, driver and version. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheFolder, cacheKey, makeFolder } from '../../cache/disk-cache.ts'
import { withFileErrors, writeFile } from '../node-files.ts'
import { version } from './package.ts'
import { processorKey, processorName } from './processor-key.ts'

/** The identity of a device for which a measurement is valid. */
export interface Chip {
  readonly kind: string
  readonly name: string
  readonly driver: string
}

/**
 * The chip of a device. All processors of a host count as one; hosts are distinguished by more than the processor's
 * name.
 */
export function chipOf(device: {
  readonly kind: string
  readonly name?: string | undefined
  readonly driver?: string | undefined
}): Chip {
  const { kind, name = '', driver } = device
  if (kind !== 'cpu') return { kind, name, driver: driver ?? '' }
  return {
    kind,
    name: `${processorName() || name} (${processorKey()})`,
    driver: `Node ${process.versions.node}, V8 ${process.versions.v8}`,
  }
}

type Env = Readonly<Record<string, string | undefined>>

/** `undefined` if caching is off. */
const folderOf = (env: Env): string | undefined => {
  const folder = cacheFolder(undefined, env)
  return folder === undefined ? undefined : join(folder, 'calibrations')
}

const NAME_CHARS = 24

/** The path of a chip's calibration; `undefined` if caching is off. */
export function calibrationPath({ kind, name, driver }: Chip, env: Env = process.env): string | undefined {
  const folder = folderOf(env)
  const key = cacheKey([kind, name, driver, version()]).slice(0, NAME_CHARS)
  return folder === undefined ? undefined : join(folder, `${kind}-${key}.json`)
}

/** Writes a calibration. @throws SptError `io/…` */
export const writeCalibration = (path: string, calibration: object): Promise<void> =>
  writeFile(path, `${JSON.stringify(calibration)}\n`)

/** Creates the folder of a calibration. @throws SptError `io/…` */
export const makeCalibrationFolder = async (path: string): Promise<void> => {
  await withFileErrors(path, 'write', () => makeFolder(dirname(path)))
}

/** The calibration of a chip as parsed JSON; `null` if there is no file, `undefined` if it cannot be read. */
export function storedCalibration(chip: Chip, env: Env = process.env): unknown {
  const path = calibrationPath(chip, env)
  return path === undefined ? null : storedAt(path)
}

function storedAt(path: string): unknown {
  try {
    // A file that contains JSON's null is not a calibration.
    return JSON.parse(readFileSync(path, 'utf8')) ?? undefined
  } catch (e) {
    return (e as NodeJS.ErrnoException).code === 'ENOENT' ? null : undefined
  }
}

/** The calibrations of all devices of a kind, latest first; `undefined` for files that are not JSON. */
export function storedCalibrations(kind: string, env: Env = process.env): readonly unknown[] {
  const folder = folderOf(env)
  if (folder === undefined) return []
  const names = (): string[] => {
    try {
      const modified = (n: string): number => statSync(join(folder, n)).mtimeMs
      const matching = readdirSync(folder).filter((n) => n.startsWith(`${kind}-`) && n.endsWith('.json'))
      return matching.sort((a, b) => modified(b) - modified(a))
    } catch {
      return []
    }
  }
  return names().map((name) => storedAt(join(folder, name)))
}
