/** What the benchmarks share: options, medians, tables, child processes. */
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The value after `--name`, or nothing. */
export function option(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? undefined : process.argv[at + 1]
}

export const count = (name: string, otherwise: number): number => {
  const text = option(name)
  const n = Number(text ?? otherwise)
  if (!Number.isInteger(n) || n < 1) throw new Error(`--${name} takes a positive integer, not ${text}`)
  return n
}

/** A file of the package, from the sources as from `dist`. */
export function packageFile(path: string): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder)
  return join(folder, path)
}

export const isMain = (url: string): boolean => process.argv[1] === fileURLToPath(url)

/** What belongs together, in the order of what comes first. */
export function together<T>(items: readonly T[], by: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const own = groups.get(by(item))
    if (own) own.push(item)
    else groups.set(by(item), [item])
  }
  return groups
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** A number that is the same for a text in every run. */
export const seedOf = (text: string): number =>
  [...text].reduce((h, c) => (Math.imul(h, 31) + c.charCodeAt(0)) | 0, 7) >>> 0

/** Milliseconds of the process, of all its threads. */
export const cpu = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Runs a program of this folder in a process of its own; what it prints. */
export function run(args: readonly string[], url: string): string {
  const done = spawnSync(process.execPath, [fileURLToPath(url), ...args], { encoding: 'utf8' })
  if (done.status !== 0) throw new Error(done.stderr || `${fileURLToPath(url)} ${args.join(' ')} failed`)
  return done.stdout
}

/** The same for one that prints JSON. */
export const child = <T>(args: readonly string[], url: string): T => JSON.parse(run(args, url)) as T

export const machine = (): string =>
  `${cpus()[0]?.model ?? 'unknown'} × ${cpus().length}, Node ${process.version}`

/** Columns as wide as they need; numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const text = rows.map((r) => r.map((c) => (typeof c === 'number' ? c.toFixed(2) : c)))
  const width = head.map((h, k) => Math.max(h.length, ...text.map((r) => r[k]!.length)))
  const line = (cells: readonly string[], row?: readonly (string | number)[]): string =>
    cells
      .map((c, k) => (typeof row?.[k] === 'number' ? c.padStart(width[k]!) : c.padEnd(width[k]!)))
      .join('  ')
      .trimEnd()
  return [
    line(head),
    width.map((w) => '-'.repeat(w)).join('  '),
    ...text.map((r, k) => line(r, rows[k])),
  ].join('\n')
}

/** Writes what was measured where `--json PATH` says. */
export function writeJson(figures: unknown): void {
  const path = option('json')
  if (path) writeFileSync(path, `${JSON.stringify({ machine: machine(), figures }, null, 2)}\n`)
}
