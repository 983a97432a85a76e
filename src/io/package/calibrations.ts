/** Measurements of `spt calibrate`: files in the user's cache folder, one for each chip, driver and version. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { cacheFolder, cacheKey, makeFolder } from '../../cache/disk-cache.ts'
import { withFileErrors, writeFile } from '../node-files.ts'
import { version } from './package.ts'

/** The identity of a device for which a measurement is valid. */
interface Chip {
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

// Name of the host's processor, and a hash that distinguishes processors with the same name, such as virtual
// machines.

/** Length of the hash in characters; few hosts are compared in one study. */
const HASH_LENGTH = 8
/** Fields of the first processor that do not change while it runs, unlike its frequency. */
const FIXED_FIELDS = [
  'vendor_id',
  'cpu family',
  'model',
  'stepping',
  'microcode',
  'cache size',
  'flags',
  'CPU part',
  'Features',
]
const SYSTEM = '/sys/devices/system/cpu/cpu0'
const FILES = [
  `${SYSTEM}/cpufreq/cpuinfo_max_freq`,
  ...[0, 1, 2, 3, 4].map((k) => `${SYSTEM}/cache/index${k}/size`),
]

type Read = (path: string) => string

const readText: Read = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Model name of the first processor; '' if the system does not report one. */
export const processorName = (): string => cpus()[0]?.model.trim() ?? ''

let cached: string | undefined

/**
 * `4 × 1a2b3c4d`: the number of processors, and a hash of the model, its stepping and microcode, caches, features and
 * maximum frequency.
 */
const processorKey = (): string => {
  cached ??= processorKeyBy(readText)
  return cached
}

export function processorKeyBy(
  read: Read,
  processors: readonly { readonly model: string; readonly speed: number }[] = cpus(),
): string {
  const first = read('/proc/cpuinfo').split(/\n\s*\n/)[0]!
  const fields = new Map(
    first.split('\n').map((line) => line.split(/\s*:\s*/) as [string, string | undefined]),
  )
  // Without further information, the speed is the nominal one.
  const speed = first.trim() === '' ? `${processors[0]?.speed ?? 0}` : ''
  const parts = [
    ...FIXED_FIELDS.map((name) => fields.get(name) ?? ''),
    // The time-stamp counter's frequency differs slightly between boots.
    `${Math.round(Number(fields.get('bogomips') ?? 0) / 100)}`,
    ...FILES.map((path) => read(path).trim()),
    speed,
  ]
  const hash = cacheKey([...new Set(processors.map((c) => c.model)), ...parts]).slice(0, HASH_LENGTH)
  return `${processors.length} × ${hash}`
}
