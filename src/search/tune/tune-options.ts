/** Validates the options of `tune` and `tuneAll` before anything runs. */
import { checkDevice, expectArgument, expectOptions } from '../../api/inputs/argument-checks.ts'
import { declaredOf, type RunInputs, sizesOf } from '../../api/inputs/bound-inputs.ts'
import { expectKernel, type Kernel } from '../../api/kernels/kernel.ts'
import {
  either,
  expectValues,
  FLAG,
  FUNCTION,
  INTEGER,
  MILLISECONDS,
  RECORD,
  SECONDS,
  SIGNAL,
  TEXT,
  type ValueKind,
} from '../../ast/diagnostics/value-kinds.ts'
import type { Inputs } from '../../run/bind/types.ts'
import type { Device } from '../../runtime/device.ts'
import { checkBudgets, type SearchOptions, type SearchProgress } from '../loop/search-options.ts'
import { compilerVersion, deviceIdentity, tunedTensors } from '../records/identity.ts'
import type { Records } from '../records/index.ts'
import type { DeviceIdentity, TunedTensor } from '../records/types.ts'
import { strategyNamed } from '../strategies/index.ts'
import type { KernelSpace, PointSpace, StrategyFactory } from '../types.ts'
import type { LibraryTrial } from './alternatives.ts'
import type { QueueOptions } from './remote-evaluator.ts'

export interface TuneOptions extends Pick<SearchOptions, 'trials' | 'patience' | 'prior' | 'signal'> {
  /** Default: the kernel's own space for this device (`cpu_space`, `gpu_space`), otherwise its sketches. */
  readonly space?: KernelSpace<Kernel> | undefined
  /** Inputs as for `bind`: unbound ones are random if there is a seed. */
  readonly inputs: RunInputs
  readonly device: Device
  /** Seconds from the call to the final comparison, which takes at most half as long; at least half are for trials. */
  readonly seconds?: number | undefined
  /**
   * Default: `model` if there is a prior, otherwise `surrogate`, the best strategies in `bench/strategies`. `model`
   * uses the device's cost model, unless `prior` replaces it.
   */
  readonly strategy?: string | StrategyFactory | undefined
  /** Seed of the strategy and of the order of measurements; default 1. */
  readonly seed?: number | undefined
  readonly records?: Records | undefined
  /** Name of the data in the records, such as a file name. */
  readonly data?: string | undefined
  /** Reuse trials of the same study from the records; default true. */
  readonly resume?: boolean | undefined
  readonly onProgress?: ((progress: TuneProgress) => void) | undefined
  /** Opens the device again, once, if it is lost. */
  readonly reopen?: (() => Promise<Device>) | undefined
  /** Milliseconds that lowering a point may take; default 30,000. */
  readonly timeout?: number | undefined
  /**
   * Number of points evaluated together, and measured against each other; default 8, with a queue twice the number of
   * workers.
   */
  readonly batch?: number | undefined
  /**
   * Counts the bytes and operations of `finals` for reports, which takes seconds, unless `signal` aborts; default
   * false.
   */
  readonly explain?: boolean | undefined
  /** Evaluates library routines of the device that compute the kernel; default true. */
  readonly libraries?: boolean | undefined
  /** Evaluates trials on workers; the final comparison runs in this process. */
  readonly queue?: QueueOptions | undefined
}

export interface TuneProgress extends SearchProgress {
  /** Number of trials that the records contained. */
  readonly knownTrials: number
  /** The fastest library routine, if one was measured. */
  readonly library?: LibraryTrial | undefined
  /** Number of points that the cost model has ranked, while it ranks. */
  readonly ranking?: number | undefined
  /** Name of the kernel that the final comparison measures. */
  readonly comparing?: string | undefined
}

/** Checked elsewhere. */
export const ANY: ValueKind = { holds: () => true, expected: '' }

/** Options of one search that apply to all: inputs belong to cases, and reports to all searches together. */
const COMMON_OPTIONS = {
  device: ANY,
  trials: ANY,
  seconds: ANY,
  patience: ANY,
  batch: ANY,
  queue: ANY,
  strategy: either({ ...TEXT, expected: 'the name of a strategy' }, FUNCTION),
  seed: INTEGER,
  prior: { ...FUNCTION, expected: 'a function of points that gives a number for each' },
  records: {
    holds: (x) => RECORD.holds(x) && typeof (x as { query?: unknown }).query === 'function',
    expected: 'a result of openRecords',
  },
  resume: FLAG,
  signal: SIGNAL,
  onProgress: FUNCTION,
  reopen: { ...FUNCTION, expected: 'a function that opens the device again' },
  timeout: MILLISECONDS,
} as const satisfies Readonly<Record<string, ValueKind>>

export const SPACE: ValueKind = {
  holds: (x) =>
    RECORD.holds(x) &&
    typeof (x as { next?: unknown }).next === 'function' &&
    typeof (x as { kernel?: unknown }).kernel === 'function',
  expected: 'a space of schedules: it has next and kernel',
}

/**
 * Validates the options of `tune` or `tuneAll`. @param own - options of this call alone
 * @throws SptError `api/argument`, `api/unknown-option`, `search/budget`, `search/strategy`
 */
export function checkTuning(
  call: string,
  kernel: unknown,
  options: { readonly device: Device; readonly strategy?: unknown } & Parameters<typeof checkBudgets>[0],
  own: Readonly<Record<string, ValueKind>>,
): void {
  const kinds = { ...COMMON_OPTIONS, ...own }
  expectOptions(call, options, Object.keys(kinds) as (keyof typeof options)[])
  expectKernel(kernel)
  const { device, trials, seconds, patience, batch, strategy } = options
  checkDevice(device)
  expectValues(options, kinds)
  checkBudgets({ trials, seconds, patience, batch })
  if (typeof strategy === 'string') strategyNamed(strategy)
}

/** @param tensorsKey - `null` if each case has its own tensors @throws SptError as `checkTuning` */
export function checkQueue(queue: Partial<QueueOptions> | undefined, tensorsKey: 'tensors' | null): void {
  if (queue === undefined) return
  const keys = ['file', 'program', 'idleSeconds', 'onNote'] as const
  expectOptions('queue', queue, tensorsKey ? [...keys, tensorsKey] : [...keys])
  expectArgument(TEXT.holds(queue.file), 'file of queue', queue.file, 'a path')
  expectArgument(RECORD.holds(queue.program), 'program of queue', queue.program, 'what shareProgram gives')
  if (tensorsKey)
    expectArgument(RECORD.holds(queue.tensors), 'tensors of queue', queue.tensors, '{ A: { file: PATH } }')
  expectValues(queue, { idleSeconds: SECONDS, onNote: FUNCTION })
}

/** Subject of a tuning: kernel, data, device and options, sufficient to repeat it. */
export interface TuneSubject {
  readonly kernel: string
  readonly device: DeviceIdentity
  /** Version and build of the package. */
  readonly compiler: string
  readonly space: string
  readonly strategy: string
  readonly seed: number
  /** Start time, as ISO 8601. */
  readonly started: string
  readonly sizes: Readonly<Record<string, number>>
  /** Inputs, random ones as well. */
  readonly tensors: readonly TunedTensor[]
}

export function subjectOf(
  kernel: Kernel,
  inputs: Inputs,
  device: Device,
  options: { readonly space: PointSpace; readonly strategy: string | StrategyFactory; readonly seed: number },
): TuneSubject {
  const { tensors = {}, params = {} } = inputs
  return {
    kernel: kernel.name,
    device: deviceIdentity(device),
    compiler: compilerVersion(),
    space: options.space.name,
    strategy: typeof options.strategy === 'string' ? options.strategy : options.strategy.name || 'a function',
    seed: options.seed,
    started: new Date().toISOString(),
    sizes: Object.fromEntries(
      sizesOf(kernel.source, {
        tensors: declaredOf(kernel.source, tensors, kernel.allFormatInputs),
        params,
        resident: {},
      }),
    ),
    tensors: tunedTensors(tensors),
  }
}
