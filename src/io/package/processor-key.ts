/** Name of the host's processor, and a hash that distinguishes processors with the same name, such as virtual machines. */
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { cacheKey } from '../../cache/disk-cache.ts'

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
export const processorKey = (): string => {
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
