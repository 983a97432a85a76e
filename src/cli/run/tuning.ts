/** Shared by tuning on one and on several matrices: device, budget, records, Ctrl-C, the space, workers. */
import { basename, dirname, join, resolve } from 'node:path'
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { Kernel } from '../../api/kernel.ts'
import type { SptProgram } from '../../api/program.ts'
import { type Diagnostic, SptError } from '../../ast/diagnostic.ts'
import type { Program } from '../../ast/linked-program.ts'
import { inPackage } from '../../ast/resolve-path.ts'
import { makeFolder } from '../../cache/disk-cache.ts'
import { placeOf } from '../../io/package.ts'
import { devices } from '../../node.ts'
import type { Device, DeviceKind } from '../../runtime/device.ts'
import type { Records } from '../../search/records/index.ts'
import type { SharedInput } from '../../search/studies/types.ts'
import type { WrongResult } from '../../search/tally.ts'
import type { TuneOptions, TuneProgress } from '../../search/tune/index.ts'
import { usualPrior } from '../../search/tune/usual-prior.ts'
import type { KernelSpace, StrategyOptions } from '../../search/types.ts'
import type { Call } from '../command.ts'
import { outputAt } from '../outputs.ts'
import { writeNew } from '../paths.ts'
import { readInputs, seedOf } from './bind-options.ts'
import { outFile, wholeFile } from './out-file.ts'
import type { TuneFiles } from './tune-cases.ts'
import { idleOf } from './tune-worker.ts'
import { foundUntilThen, progressLine } from './tuned.ts'

export const USUAL_TRIALS = 64
const MOST = 1_000_000
const LEAST_MINUTES = 0.01
const MOST_MINUTES = 7 * 24 * 60

export type Budget = Pick<TuneOptions, 'trials' | 'seconds'>

/** `--trials` and `--minutes`. */
export function budgetOf(call: Call): Budget {
  const trials = call.integer('trials', 1, MOST)
  const minutes = call.decimal('minutes', LEAST_MINUTES, MOST_MINUTES)
  if (minutes === undefined) return { trials: trials ?? USUAL_TRIALS }
  return { trials, seconds: 60 * minutes }
}

/** The kernel to tune, and the options that say how. */
export interface Given {
  readonly call: Call
  readonly parsed: Program
  readonly program: SptProgram
  readonly kernel: Kernel
  readonly kind: DeviceKind
  readonly budget: Budget
}

export interface Tuning extends Given {
  readonly device: Device
  /** Told that a search has begun: from now on, Ctrl-C ends it with the best so far. */
  searching(): void
  /** Options of all searches of the call. */
  readonly options: Pick<
    TuneOptions,
    'trials' | 'seconds' | 'strategy' | 'seed' | 'records' | 'resume' | 'signal' | 'reopen'
  >
}

/**
 * Ctrl-C ends the searches of `work`, with the best so far. Before the first of them begins (`searching`) there is none: it
 * ends the process, as it does elsewhere, whatever that is at.
 */
export async function withTuning<T>(given: Given, work: (tuning: Tuning) => Promise<T>): Promise<T> {
  const { call, kind, budget } = given
  const device = await devices[kind]()
  const stop = new AbortController()
  const interrupt = (): void => stop.abort()
  let records: Records | undefined
  const searching = (): void => {
    if (!stop.signal.aborted && !process.listeners('SIGINT').includes(interrupt))
      process.once('SIGINT', interrupt)
  }
  try {
    if (call.one('db') !== undefined || call.flag('resume')) {
      const { openRecords, usualPath } = await import('../../search/records/index.ts')
      const path = call.one('db') ?? usualPath(call.io.env)
      // What is wrong with the folder is said of the file.
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
    return await work({ ...given, device, options, searching })
  } finally {
    process.off('SIGINT', interrupt)
    records?.close()
    await device.dispose()
  }
}

export async function inputsOf({ call, kernel }: Given, { files, params }: TuneFiles): Promise<RunInputs> {
  return {
    tensors: await readInputs(kernel.source, files, params, kernel.usedData()),
    params: Object.fromEntries(params),
    seed: seedOf(call),
  }
}

/** Name of the data in records: file names without folders; random data has no name. */
export const dataName = ({ files }: TuneFiles): string | undefined =>
  [...files].map(([name, file]) => `${name}=${basename(file)}`).join(' ') || undefined

/**
 * The progress of one search: in place on a terminal, otherwise a line for each batch of trials and a line for the last
 * comparison.
 */
export function progressReporter({ io }: Call): (search: TuneProgress | null, name?: string) => void {
  let last = ''
  return (search, name = '') => {
    const line = `${name}${search ? progressLine(search) : 'the candidates of all are tried'}`
    const stage = search ? `${name}${search.done} ${search.comparing !== undefined}` : line
    io.progress?.(line)
    if (io.progress || !io.progressLines || search?.ranking !== undefined || stage === last) return
    last = stage
    io.err(`${line}\n`)
  }
}

const noted = new WeakMap<Call, Set<string>>()

/** Prints a note once per call, because all cases would repeat it. */
function noteOnce(call: Call, text: string): void {
  const before = noted.get(call) ?? new Set()
  noted.set(call, before)
  if (before.has(text)) return
  before.add(text)
  call.io.err(`note: ${text}\n`)
}

/** Cost-model prior, if there is one for the device and it was not switched off. */
export const priorOf = (
  { call, kernel, device }: Pick<Tuning, 'call' | 'kernel' | 'device'>,
  space: KernelSpace<Kernel>,
  inputs: RunInputs,
): StrategyOptions['prior'] =>
  usualPrior(space, {
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
}: Given): Promise<Omit<NonNullable<TuneOptions['queue']>, 'tensors'> | undefined> {
  const url = call.one('queue')
  if (url === undefined) return undefined
  const { shareProgram } = await import('../../search/studies/index.ts')
  return {
    url,
    program: shareProgram(program),
    idleSeconds: idleOf(call, 1),
    onNote: (line) => call.io.err(`${line}\n`),
  }
}

/** Input files for workers; each worker resolves files of the package in its own installation. */
export const sharedFiles = ({ files }: TuneFiles): Record<string, SharedInput> =>
  Object.fromEntries(
    [...files].map(([name, file]) => [name, { file: inPackage(file) ? file : resolve(placeOf(file)) }]),
  )

/** Writes candidates whose results differ from the reference to files, so that they can be looked into. */
export async function reportWrong(
  { call, kernel, kind }: Given,
  wrong: readonly (WrongResult & { readonly case?: string })[],
): Promise<void> {
  const folder = call.one('bugs') ?? '.'
  if (wrong.length > 0) await makeFolder(folder).catch(() => undefined)
  const pathOf = (n: number): string => join(folder, `spt-bug-${kernel.name}-${n}.json`)
  // Those of other runs stay: without records they are all that is left of a bug.
  let last = 0
  for (const bug of wrong) {
    const all = {
      kernel: kernel.name,
      file: call.args[0],
      device: kind,
      bind: call.many('bind'),
      size: call.many('size'),
      ...bug,
    }
    const text = `${JSON.stringify(all, null, 2)}\n`
    try {
      last = await writeNew(pathOf, text, last + 1)
      call.io.err(`warning: a candidate differs from the reference: ${pathOf(last)}\n`)
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      // What else was found is not lost for that.
      const [{ message, code }] = e.diagnostics as [Diagnostic]
      call.io.err(`warning: a candidate differs from the reference, but ${message} [${code}]:\n${text}`)
    }
  }
}

/** Reports the best results of a search that failed before rethrowing its error. */
export async function toldUntilThen<T>(
  tuning: Tuning,
  searched: Promise<T>,
  last: () =>
    | { readonly search: TuneProgress; readonly space: KernelSpace<Kernel>; readonly name?: string }
    | undefined,
): Promise<T> {
  const { io } = tuning.call
  try {
    return await searched
  } catch (e) {
    io.progress?.('')
    const found = last()
    if (found) {
      io.err(foundUntilThen(found.search, found.space, found.name))
      await reportWrong(tuning, found.search.wrong)
    }
    throw e
  }
}

/** Writes the schedules found to the file of `--out`, with the declarations they need. */
export async function writeOut({ call, parsed, kernel }: Given, text: string | undefined): Promise<void> {
  const out = call.one('out')
  if (out === undefined || text === undefined) return
  const written = call.flag('whole') ? wholeFile : outFile
  await call.write(out, written(parsed, kernel.name, text, out))
  const name = outputAt(out) === null ? scheduleFound(text) : undefined
  if (name !== undefined && !call.flag('json'))
    call.io.out(`\n// Written to ${out}: spt run ${out} --schedule ${name}\n`)
}

/** The schedule to run: the last in the text, because a choice follows its alternatives. */
export const scheduleFound = (text: string): string | undefined =>
  [...text.matchAll(/^(?:schedule|choose) \w+\.(\w+)/gm)].at(-1)?.[1]
