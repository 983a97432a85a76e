/** Shared by tuning on one and on several matrices: device, budget, records, Ctrl-C, prior, workers, output files. */
import { basename, dirname, join, resolve } from 'node:path'
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { SptProgram } from '../../api/programs/program.ts'
import { type Diagnostic, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Program } from '../../ast/imports/linked-program.ts'
import { inPackage } from '../../ast/imports/resolve-path.ts'
import { makeFolder } from '../../cache/disk-cache.ts'
import { locate } from '../../io/package/package.ts'
import { devices } from '../../node.ts'
import type { Device, DeviceKind } from '../../runtime/device.ts'
import { atEnd } from '../../runtime/dispose.ts'
import type { WrongResult } from '../../search/loop/tally.ts'
import { defaultPrior } from '../../search/ranking/cost-model.ts'
import type { Records } from '../../search/records/index.ts'
import type { SharedInput } from '../../search/studies/rebuild.ts'
import type { TuneOptions, TuneProgress } from '../../search/tune/index.ts'
import type { KernelSpace, StrategyOptions } from '../../search/types.ts'
import type { Call } from '../arguments/command.ts'
import { writeNumberedFile } from '../arguments/paths.ts'
import { standardStream } from '../output/outputs.ts'
import { readInputs, seedOf } from '../run/bind-options.ts'
import { outFile, selfContainedFile } from '../run/out-file.ts'
import type { TuneFiles } from './tune-cases.ts'
import { partialResultText, progressLine } from './tune-report.ts'
import { idleOption } from './tune-worker.ts'

export const DEFAULT_TRIALS = 64
const MAX_TRIALS = 1_000_000
const MIN_MINUTES = 0.01
const MAX_MINUTES = 7 * 24 * 60

export type Budget = Pick<TuneOptions, 'trials' | 'seconds'>

/** `--trials` and `--minutes`. */
export function budgetOf(call: Call): Budget {
  const trials = call.integer('trials', 1, MAX_TRIALS)
  const minutes = call.decimal('minutes', MIN_MINUTES, MAX_MINUTES)
  if (minutes === undefined) return { trials: trials ?? DEFAULT_TRIALS }
  return { trials, seconds: 60 * minutes }
}

/** The kernel to tune, with the budget and the call's options. */
export interface TuneRequest {
  readonly call: Call
  readonly parsed: Program
  readonly program: SptProgram
  readonly kernel: Kernel
  readonly kind: DeviceKind
  readonly budget: Budget
}

export interface Tuning extends TuneRequest {
  readonly device: Device
  /** Call when a search begins: from then on, Ctrl-C ends it with the best result so far. */
  onSearchStart(): void
  readonly options: Pick<
    TuneOptions,
    'trials' | 'seconds' | 'strategy' | 'seed' | 'records' | 'resume' | 'signal' | 'reopen'
  >
}

/**
 * Opens the device and the records for `work`. Ctrl-C ends a search of `work` with the best result so far; before the first
 * search (`onSearchStart`) it ends the process.
 */
export async function withTuning<T>(request: TuneRequest, work: (tuning: Tuning) => Promise<T>): Promise<T> {
  const { call, kind, budget } = request
  await using device = await devices[kind]()
  const stop = new AbortController()
  const interrupt = (): void => stop.abort()
  let records: Records | undefined
  const onSearchStart = (): void => {
    if (!stop.signal.aborted && !process.listeners('SIGINT').includes(interrupt))
      process.once('SIGINT', interrupt)
  }
  using _ = atEnd(() => {
    process.off('SIGINT', interrupt)
    records?.close()
  })
  if (call.one('db') !== undefined || call.flag('resume')) {
    const { openRecords, defaultRecordsPath } = await import('../../search/records/index.ts')
    const path = call.one('db') ?? defaultRecordsPath(call.io.env)
    // Errors of the folder are reported when the file is opened.
    await makeFolder(dirname(path)).catch(() => undefined)
    records = await openRecords(path)
  }
  const options = {
    ...budget,
    strategy: call.one('strategy'),
    seed: seedOf(call),
    records,
    resume: call.flag('resume'),
    signal: stop.signal,
    reopen: () => devices[kind](),
  }
  return await work({ ...request, device, options, onSearchStart })
}

export async function inputsOf(
  { call, kernel }: TuneRequest,
  { files, params }: TuneFiles,
): Promise<RunInputs> {
  return {
    tensors: await readInputs(kernel.source, files, params, kernel.formatInputs()),
    params: Object.fromEntries(params),
    seed: seedOf(call),
  }
}

/** Name of the data in records: file names without folders; random data has no name. */
export const dataName = ({ files }: TuneFiles): string | undefined =>
  [...files].map(([name, file]) => `${name}=${basename(file)}`).join(' ') || undefined

/** Reports the state of a search on the points of `space`; `null` while the candidates of all cases are tried. */
type ReportProgress = (
  search: TuneProgress | null,
  space: KernelSpace<Kernel> | undefined,
  name?: string,
  position?: string,
) => void

/**
 * Runs a search with its progress: in place on a terminal, otherwise a line for each batch of trials and a line for the last
 * comparison. Reports the best result of a search that fails before rethrowing its error.
 */
export async function withProgress<T>(
  tuning: Tuning,
  run: (report: ReportProgress) => Promise<T>,
): Promise<T> {
  const { io } = tuning.call
  let last = ''
  let latest:
    | { readonly search: TuneProgress; readonly space: KernelSpace<Kernel>; readonly name: string }
    | undefined
  const report: ReportProgress = (search, space, name = '', position = '') => {
    tuning.onSearchStart()
    if (search && space) latest = { name, search, space }
    const head = name && `${name} (${position}): `
    const line = `${head}${search ? progressLine(search) : 'the candidates of all are tried'}`
    const stage = search ? `${head}${search.trialsDone} ${search.comparing !== undefined}` : line
    io.progress?.(line)
    if (io.progress || !io.progressLines || search?.ranking !== undefined || stage === last) return
    last = stage
    io.err(`${line}\n`)
  }
  try {
    return await run(report)
  } catch (e) {
    // Before the texts of the failure.
    io.progress?.('')
    if (latest) {
      io.err(partialResultText(latest.search, latest.space, latest.name))
      await writeWrongResults(tuning, latest.search.wrong)
    }
    throw e
  } finally {
    io.progress?.('')
  }
}

const printedNotes = new WeakMap<Call, Set<string>>()

/** Prints a note once per call, because all cases would repeat it. */
function noteOnce(call: Call, text: string): void {
  const printed = printedNotes.get(call) ?? new Set()
  printedNotes.set(call, printed)
  if (printed.has(text)) return
  printed.add(text)
  call.io.err(`note: ${text}\n`)
}

/** Cost-model prior, if there is one for the device and it was not switched off. */
export const priorOf = (
  { call, kernel, device }: Pick<Tuning, 'call' | 'kernel' | 'device'>,
  space: KernelSpace<Kernel>,
  inputs: RunInputs,
): StrategyOptions['prior'] =>
  defaultPrior(space, {
    kernel,
    device,
    inputs,
    strategy: call.one('strategy'),
    onNote: (note) => noteOnce(call, note),
  })

/** `--queue`: the program for workers, which find files by the same paths. */
export async function queueOf({
  call,
  program,
}: TuneRequest): Promise<Omit<NonNullable<TuneOptions['queue']>, 'tensors'> | undefined> {
  const file = call.one('queue')
  if (file === undefined) return undefined
  const { shareProgram } = await import('../../search/studies/index.ts')
  return {
    file,
    program: shareProgram(program),
    idleSeconds: idleOption(call, 1),
    onNote: (line) => call.io.err(`${line}\n`),
  }
}

/** Input files for workers; each worker resolves files of the package in its own installation. */
export const sharedFiles = ({ files }: TuneFiles): Record<string, SharedInput> =>
  Object.fromEntries(
    [...files].map(([name, file]) => [name, { file: inPackage(file) ? file : resolve(locate(file)) }]),
  )

/** Writes a file for each candidate whose result differs from the reference. */
export async function writeWrongResults(
  { call, kernel, kind }: TuneRequest,
  wrongResults: readonly (WrongResult & { readonly case?: string })[],
): Promise<void> {
  const folder = call.one('bugs') ?? '.'
  if (wrongResults.length > 0) await makeFolder(folder).catch(() => undefined)
  const pathOf = (n: number): string => join(folder, `spt-bug-${kernel.name}-${n}.json`)
  // Files of other runs are kept, because they may be the only trace of a bug.
  let last = 0
  for (const bug of wrongResults) {
    const report = {
      kernel: kernel.name,
      file: call.args[0],
      device: kind,
      bind: call.many('bind'),
      size: call.many('size'),
      ...bug,
    }
    const text = `${JSON.stringify(report, null, 2)}\n`
    try {
      last = await writeNumberedFile(pathOf, text, last + 1)
      call.io.err(`warning: a candidate differs from the reference: ${pathOf(last)}\n`)
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      // The result of the search is still reported.
      const [{ message, code }] = e.diagnostics as [Diagnostic]
      call.io.err(`warning: a candidate differs from the reference, but ${message} [${code}]:\n${text}`)
    }
  }
}

/** Writes the schedules found to the file of `--out`, with the declarations they need. */
export async function writeOutFile(
  { call, parsed, kernel }: TuneRequest,
  text: string | undefined,
): Promise<void> {
  const out = call.one('out')
  if (out === undefined || text === undefined) return
  const render = call.flag('whole') ? selfContainedFile : outFile
  await call.write(out, render(parsed, kernel.name, text, out))
  const name = standardStream(out) === null ? lastSchedule(text) : undefined
  if (name !== undefined && !call.flag('json'))
    call.io.out(`\n// Written to ${out}: spt run ${out} --schedule ${name}\n`)
}

/** The last schedule or dispatch of the text, because a dispatch follows its variants. */
export const lastSchedule = (text: string): string | undefined =>
  [...text.matchAll(/^(?:schedule|choose) \w+\.(\w+)/gm)].at(-1)?.[1]
