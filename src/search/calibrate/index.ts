/** Calibration: measures small kernels, and fits the coefficients of the cost model and ceilings for rooflines. */

import type { Binding } from '../../api/built/binding.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import type { AbortSignalLike } from '../../ast/work.ts'
import type { Coefficients } from '../../cost-model/analytic.ts'
import type { TimedTerms } from '../../cost-model/learned/fitting.ts'
import { expectedTime, fitCoefficients, learnableNames } from '../../cost-model/learned/fitting.ts'
import { type Calibration, initialModel } from '../../cost-model/learned/trained-models.ts'
import { modelDataOf, termsOfCompilation } from '../../cost-model/prediction.ts'
import { chipOf } from '../../io/package/calibrations.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { Random } from '../../run/bind/sources/random-tensors.ts'
import { runOn } from '../../run/compile/program.ts'
import type { Device } from '../../runtime/device.ts'
import { atEnd } from '../../runtime/dispose.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { deviceKey, withDeviceLock } from '../measuring/device-lock.ts'
import { measureRounds } from '../measuring/measure-rounds.ts'
import { sketches } from '../spaces/sketches.ts'
import { type MicroCase, microCases, microKernels } from './kernels.ts'

export type { Calibration } from '../../cost-model/learned/trained-models.ts'

export interface CalibrateOptions {
  /** Time limit of the calibration in seconds; default 30. */
  readonly seconds?: number | undefined
  /** Cancels the calibration; the abort reason is thrown. */
  readonly signal?: AbortSignalLike | undefined
  /** Called with the completed fraction. */
  readonly onProgress?: ((share: number) => void) | undefined
}

const MIN_SECONDS = 5
const DEFAULT_SECONDS = 30
/** Maximum share of the time for compiling kernels. */
const COMPILE_FRACTION = 0.5
/** Random schedules of each case, in addition to the default of the sketches. */
const RANDOM_SCHEDULES = 3
const ROUNDS = 15
const FIT_SECONDS = 2

/**
 * Measures a device while holding its lock.
 * @throws SptError `calibrate/seconds`, `calibrate/too-short`; as `build`; the abort reason of `signal`
 */
export async function calibrate(device: Device, options: CalibrateOptions = {}): Promise<Calibration> {
  expectOptions('calibrate', options, ['seconds', 'signal', 'onProgress'])
  const { seconds = DEFAULT_SECONDS, signal } = options
  if (!(seconds >= MIN_SECONDS && seconds <= 3600))
    failWith('calibrate/seconds', `a device cannot be calibrated in ${seconds} seconds`, {
      expected: `${MIN_SECONDS} to 3600 seconds`,
    })
  const lock = signal ? { signal } : {}
  return withDeviceLock(deviceKey(device), () => runCalibration(device, seconds, options), lock)
}

interface Ready {
  readonly of: MicroCase
  readonly sample: Omit<TimedTerms, 'milliseconds'>
  readonly prepared: Binding
  readonly release: () => void
}

async function runCalibration(
  device: Device,
  seconds: number,
  { signal, onProgress }: CalibrateOptions,
): Promise<Calibration> {
  const start = performance.now()
  const elapsed = (): number => (performance.now() - start) / 1000
  const ready: Ready[] = []
  using _ = atEnd(() => {
    for (const r of ready) r.release()
  })
  await prepareAll(device, ready, () => {
    signal?.throwIfAborted()
    onProgress?.(Math.min(COMPILE_FRACTION, elapsed() / seconds))
    return elapsed() < COMPILE_FRACTION * seconds
  })
  const remaining = seconds - elapsed() - FIT_SECONDS
  const { outcomes } = await measureRounds(
    device,
    ready.map((r) => r.prepared),
    {
      rounds: ROUNDS,
      seconds: Math.max(0.5, remaining),
      warmups: 2,
      sampleMs: 0.2,
      all: true,
      width: 0,
      signal,
    },
  )
  const samples = ready.flatMap(({ of, sample }, k) => {
    const o = outcomes[k]!
    return o.status === 'measured' ? [{ of, ...sample, milliseconds: o.timing.median }] : []
  })
  return conclude(device, samples)
}

/** Prepares the cases in an order in which the first few are of all kinds, for devices with slow compilers. */
async function prepareAll(device: Device, ready: Ready[], goesOn: () => boolean): Promise<void> {
  const program = microKernels()
  const cases = microCases(device.kind)
  const known = new Map<Tensor | undefined, ReturnType<typeof modelDataOf>>()
  const dataOf = ({ tensors: { A } }: MicroCase): ReturnType<typeof modelDataOf> =>
    getOrAdd(known, A, () => modelDataOf(A ? { A } : {}))
  const random = new Random(9)
  for (let drawn = 0; drawn <= RANDOM_SCHEDULES; drawn++)
    for (const of of cases) {
      if (!goesOn()) return
      const kernel = scheduleCase(program.kernel(of.kernel), device, of, drawn === 0 ? null : random)
      if (!kernel) continue
      const { compilation } = runOn(kernel, device.kind)
      const terms = termsOfCompilation(compilation, { ...dataOf(of), params: of.params })
      const compiled = await kernel.build(device, { auto: false })
      const prepared = await compiled.bind({ ...of.tensors, ...of.params })
      const release = (): void => {
        prepared.free()
        compiled.release()
      }
      ready.push({ of, sample: { terms }, prepared, release })
    }
}

/** The kernel under the rules' best schedule, or a random one; `null` if it is rejected. */
function scheduleCase(kernel: Kernel, device: Device, of: MicroCase, random: Random | null): Kernel | null {
  try {
    const space = sketches(kernel, { device: device.kind, sizes: of.params, formats: {} })
    if (!random) return space.kernel(space.defaultPoint)
    const point: Record<string, number | string> = {}
    for (let open = space.next(point); open; open = space.next(point))
      point[open.name] = open.values[random.below(open.values.length)]!
    return space.kernel(point)
  } catch {
    return null
  }
}

interface Sample extends TimedTerms {
  readonly of: MicroCase
}

const MIN_SAMPLES = 20

function conclude(device: Device, samples: readonly Sample[]): Calibration {
  if (samples.length < MIN_SAMPLES)
    failWith(
      'calibrate/too-short',
      `only ${samples.length} kernels could be made and measured in that time`,
      { expected: `${MIN_SAMPLES} at least`, hint: 'give more --seconds' },
    )
  const start = initialModel(device.kind)
  const from = start.coefficients
  const { coefficients, error } = fitCoefficients(samples, from, { names: learnableNames(from) })
  const { name, driver } = chipOf(device)
  return {
    ...start,
    kind: device.kind,
    chip: name,
    driver,
    coefficients: roundCoefficients(coefficients),
    ceilings: ceilings(samples, coefficients),
    error,
    kernels: kernelErrors(samples, coefficients),
  }
}

const roundCoefficients = (c: Coefficients): Coefficients =>
  Object.fromEntries(
    Object.entries(c).map(([n, v]) => [n, Number(v.toPrecision(5))]),
  ) as unknown as Coefficients

function ceilings(samples: readonly Sample[], { cacheBytes }: Coefficients): Calibration['ceilings'] {
  const best = (of: (s: Sample) => number): number =>
    samples.reduce((most, s) => Math.max(most, (1000 * of(s)) / s.milliseconds), 0)
  const memory = best((s) => (s.terms.footprint > 2 * cacheBytes ? s.terms.footprint : 0))
  const cache = best((s) => (s.terms.footprint <= cacheBytes ? s.terms.footprint : 0))
  return {
    memory: memory || cache,
    cache: Math.max(memory, cache),
    cacheBytes,
    f32: best((s) => s.terms.operations),
  }
}

function kernelErrors(samples: readonly Sample[], c: Coefficients): Calibration['kernels'] {
  const kernels = [...new Set(samples.map((s) => s.of.kernel))]
  return kernels.map((name) => {
    const kernelSamples = samples.filter((s) => s.of.kernel === name)
    const logs = kernelSamples.map((s) => Math.log(expectedTime(s.terms, c) / s.milliseconds))
    const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length
    return {
      name,
      samples: kernelSamples.length,
      ratio: Math.exp(mean(logs)),
      error: mean(logs.map(Math.abs)),
    }
  })
}
