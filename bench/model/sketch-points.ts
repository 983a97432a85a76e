/** Times of the points of sketches' spaces, as `sketches --times` keeps them, and what a model knows of them before measuring. */
import { sizesOf } from '../../src/api/inputs/bound-inputs.ts'
import { modelDataOf, termsOfCompilation } from '../../src/cost-model/prediction.ts'
import { type Kernel, load, type Tensor, type TraceStep } from '../../src/node.ts'
import { sparseTensors } from '../../src/run/bind/binding-names.ts'
import { runOn } from '../../src/run/compile/program.ts'
import { JUDGED, memberSets, tensorsFor } from '../sketches/judged.ts'
import { packageFile, together } from '../support.ts'
import type { DataSet } from '../verify-all/data.ts'
import { isDrawn, type Sample } from './dataset.ts'
import { linesIn, type Measured, textOf } from './records.ts'

/** A line of `--times`. */
export interface PointTime {
  readonly kernel: string
  readonly data: string
  readonly params: Readonly<Record<string, number>>
  readonly name: string
  /** The least of single runs. */
  readonly ms: number
  /** Of those that were timed again, interleaved: the least mean of runs back to back. */
  readonly back?: number
  readonly steps: readonly TraceStep[]
}

/** What was measured of an H100, by the kind of device. */
export const measuredPoints = (kind: string): readonly string[] =>
  (MEASURED[kind] ?? []).map((f) => `bench/model/measured/${f}.jsonl.gz`)
const MEASURED: Readonly<Record<string, readonly string[]>> = {
  cuda: ['h100-sketches'],
  webgpu: ['h100-webgpu-sketches'],
}

export const PLAIN = 'no schedule'
/** What `sketches` calls points of the space; all others are schedules by hand. */
export const isPoint = ({ name }: PointTime): boolean => /^(guess|form \d+|near \d+|chosen|\[.*)$/.test(name)

/** Of one kernel on some data. */
export interface PointCase {
  readonly name: string
  readonly kernel: Kernel
  /** What is bound: the tensors with structure, and parameters. */
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly params: Readonly<Record<string, number>>
  readonly times: readonly PointTime[]
}

/** `files`: of the folder that the times are of; members of families need none. What is of neither is left out. */
export async function pointCases(
  path: string,
  files: readonly DataSet[] = [],
): Promise<readonly PointCase[]> {
  const out: PointCase[] = []
  for (const [name, times] of together(linesIn<PointTime>(textOf(path)), (t) => `${t.kernel} ${t.data}`)) {
    const { kernel: called, data, params } = times[0]!
    const of = JUDGED.find((j) => j.kernel === called)
    const sets = [...files.filter((d) => d.name === data), ...memberSets(data)]
    const set = of && sets.find((d) => tensorsFor(of, d))
    const tensors = of?.order === 0 ? {} : set && tensorsFor(of, set)
    if (!of || !tensors) continue
    const kernel = (await load(packageFile(`kernels/${of.file}.spt`))).kernel(called)
    out.push({ name, kernel, tensors, params, times })
  }
  return out
}

/** Single runs beside other processes say less than what `collect` measures: so much of one of its records. */
const WEIGHT = 0.25

/** Points on members of families: what models learn beside schedules by hand. */
export async function drawnPoints(device: Measured['device'], chip: string): Promise<readonly Sample[]> {
  const cases = await Promise.all(measuredPoints(device).map((path) => pointCases(packageFile(path))))
  return cases
    .flat()
    .map((c) => ({ ...c, times: c.times.filter(isPoint) }))
    .flatMap((c) => pointSamples(c, device, chip))
    .filter(isDrawn)
    .map((s) => ({ ...s, weight: WEIGHT }))
}

/** Of cases with a tensor that has structure; what cannot be made, as records of steps that there are no more, is left out. */
function pointSamples(of: PointCase, device: Measured['device'], chip: string): readonly Sample[] {
  const { kernel, tensors } = of
  const sparse = sparseTensors(kernel.source, tensors)
  if (Object.keys(sparse).length === 0) return []
  const params = Object.fromEntries(sizesOf(kernel.source, { tensors, params: of.params, resident: {} }))
  const data = { ...modelDataOf(sparse), params }
  const width = of.params.d ?? 1
  return of.times.flatMap((t): Sample[] => {
    try {
      const terms = termsOfCompilation(runOn(kernel.replay(t.steps), device).compilation, data)
      const back = t.back === undefined ? null : 1000 * t.back
      const known = { median: 1000 * t.ms, back, terms, statistics: data.statistics }
      const of = { suite: t.kernel, data: t.data, width, candidate: t.name }
      return [{ device, chip, ...of, status: 'ok', ...known }]
    } catch {
      return []
    }
  })
}
