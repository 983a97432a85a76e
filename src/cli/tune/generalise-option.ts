/** `spt tune --generalise`: writes the rules that a search found to a dispatch table. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { inPackage, quotedPath } from '../../ast/imports/resolve-path.ts'
import { locate } from '../../io/package/package.ts'
import { kernelWord } from '../../ir/coordinates/derived-names.ts'
import type { TuneAllResult } from '../../search/tune/cases/tune-all-result.ts'
import type { Call } from '../arguments/command.ts'
import { checkWritable } from '../arguments/paths.ts'
import { importPath } from '../run/out-file.ts'
import type { TuneFiles } from './tune-cases.ts'
import type { Tuning } from './tuning.ts'

/** The path of the table; undefined without the option. */
const tablePath = (call: Call): string | undefined => {
  const path = call.one('generalise')
  return path === undefined ? undefined : locate(path)
}

/** Checks before the search that a table can be written. @throws UsageError, SptError `table/…`, `io/…` */
export async function checkGeneralise(
  call: Call,
  kernel: string,
  cases: readonly TuneFiles[],
): Promise<void> {
  const path = tablePath(call)
  if (path === undefined) return
  if (!path.endsWith('.spt') || path === call.one('out'))
    call.reject(`--generalise ${path} is not the name of a dispatch table`, {
      expected: 'a name that ends with .spt, other than the file of --out',
    })
  if (cases.length < 2)
    call.reject('--generalise needs several matrices or sizes', {
      expected: "--bind 'A=graphs/*.mtx', or --size d=32 --size d=128",
      hint: 'one matrix gives one schedule: --out FILE.spt',
    })
  await checkWritable(path)
  const { checkTable } = await import('../../search/choice/table-text.ts')
  if (existsSync(path)) checkTable(await readFile(path, 'utf8'), path, kernel)
}

/**
 * Writes the table, and returns the declaration of the dispatch that reads it, with the schedules that it calls. Without
 * rules, reports why the table was not written, and returns undefined.
 */
export async function writeTable(
  { call, kernel, kind, device }: Tuning,
  cases: readonly TuneFiles[],
  { schedule, cases: results, verdict }: TuneAllResult,
): Promise<string | undefined> {
  const path = tablePath(call)
  if (path === undefined) return undefined
  if (!schedule) {
    const reason =
      verdict === 'default'
        ? 'no schedule is faster than the default, so there are no rules to store'
        : 'tuning ended before all candidates were compared'
    const text = `${path} was not written: ${reason}.\n`
    if (call.flag('json')) call.io.err(text)
    else call.io.out(`\n// ${text}`)
    return undefined
  }
  const { dispatchTable } = await import('../../search/choice/table-text.ts')
  const date = new Date().toISOString().slice(0, 10)
  const names = cases.flatMap(({ files }) => [...files.values()].map((f) => basename(f)))
  const origin = {
    name: `${kind}-${date}`,
    status: 'measured',
    device: device.name,
    matrices: [...new Set(names.length > 0 ? names : cases.map((c) => c.name))],
    date,
    trials: results.reduce((n, c) => n + (c.search?.trials.length ?? 0), 0),
    command: commandText(call, kernel.name),
  } as const
  const before = existsSync(path) ? await readFile(path, 'utf8') : undefined
  await call.write(path, dispatchTable({ kernel, rules: schedule.rules, device: kind, origin }, before))
  const from = quotedPath(importPath(call.one('out') ?? '-', path))
  const name =
    schedule.rules.length === 1 && schedule.declarations !== '' ? `${schedule.name}_dispatch` : schedule.name
  const text = `${schedule.declarations}schedule ${kernel.name}.${name} choose from ${from}\n`
  if (!call.flag('json')) call.io.out(`\n// Written to ${path}. The dispatch that reads it:\n${text}`)
  return text
}

/** The call again, without options that do not change its result. */
function commandText(call: Call, kernel: string): string {
  const options = ['bind', 'size', 'device', 'space', 'trials', 'minutes', 'strategy', 'seed'].flatMap(
    (name) =>
      call.many(name).map((value) => `--${name} ${/^[\w.=/:-]+$/.test(value) ? value : `'${value}'`}`),
  )
  const file = call.args[0]!
  return [
    'spt tune',
    inPackage(file) ? file : basename(file),
    `--kernel ${kernelWord(kernel)}`,
    ...options,
  ].join(' ')
}
