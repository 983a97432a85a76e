/** What tells processors of one name apart, as a hash: virtual machines of any speed have the same name. */
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { cacheKey } from '../cache/disk-cache.ts'

/** Characters: few hosts have a study in common. */
const SHOWN = 8
/** Of the first processor: what does not change while it runs, as its frequency does. */
const FIXED = [
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

let known: string | undefined

/** `4 × 1a2b3c4d`: how many processors, and a hash of the model, its stepping and microcode, caches, features and greatest frequency. */
export const processorKey = (): string => {
  known ??= processorKeyBy(readText)
  return known
}

export function processorKeyBy(
  read: Read,
  all: readonly { readonly model: string; readonly speed: number }[] = cpus(),
): string {
  const first = read('/proc/cpuinfo').split(/\n\s*\n/)[0]!
  const fields = new Map(
    first.split('\n').map((line) => line.split(/\s*:\s*/) as [string, string | undefined]),
  )
  // Where nothing else is said of it, the speed is the nominal one.
  const speed = first.trim() === '' ? `${all[0]?.speed ?? 0}` : ''
  const parts = [
    ...FIXED.map((name) => fields.get(name) ?? ''),
    // Of its counter of time, which differs a little from one start to the next.
    `${Math.round(Number(fields.get('bogomips') ?? 0) / 100)}`,
    ...FILES.map((path) => read(path).trim()),
    speed,
  ]
  const hash = cacheKey([...new Set(all.map((c) => c.model)), ...parts]).slice(0, SHOWN)
  return `${all.length} × ${hash}`
}
